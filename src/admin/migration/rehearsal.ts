// A fresh server in memory that carries out requests of qmgr, so that an import can be tried without a complex. The server's core is the real one. Nothing
// is stored, no scheduler and no mom runs, and names of hosts are not looked up.

import type { Request, StatusItem } from "#protocol/messages.ts";
import { QmgrSession, type QmgrWorld } from "#qmgr/session/session.ts";
import { ctimeText } from "#sched/shapes/local-time.ts";
import { MACHINE_TIME } from "#sched/shell/machine-time.ts";
import { HandClock } from "#server/driver/hand-clock.ts";
import { immediatePorts, type OwnPorts } from "#server/driver/immediate-ports.ts";
import { ServerDriver } from "#server/driver/server-driver.ts";
import type { ClientFrame } from "#server/engine/batch.ts";
import type { Peer } from "#server/engine/identity.ts";
import { timeZone } from "#server/shell/time-zone.ts";
import { freshState } from "#server/state/load.ts";
import { PBS_VERSION } from "#support/version.ts";

/** What a request has brought. text: what qmgr would print. */
type Rehearsed = { readonly ok: boolean; readonly text: string };
type Refusal = { readonly ok: false; readonly code: number; readonly text: string | null };

const timeText = (epoch_s: number): string => ctimeText(MACHINE_TIME.civil(epoch_s));

export class Rehearsal {
  readonly #driver: ServerDriver;
  readonly #clock: HandClock;
  readonly #root: Peer;
  readonly #session: QmgrSession;
  readonly #answers = new Map<number, ClientFrame>();
  readonly #parts = new Map<number, unknown[]>();
  /** what qmgr has printed for the present request */
  #printed: string[] = [];
  /** the contents of the hook that is being imported, base64 */
  #contents = "";
  #tokens = 0;

  /** host: the name of the server. now_ms: epoch milliseconds. */
  constructor(host: string, now_ms: number) {
    const config = { host, home: "/", pbs_version: PBS_VERSION, own_user: null, ctime: timeText, timeZone, userExists: () => true };
    this.#root = { user: "root", uid: 0, groups: ["root"], host, root: true };
    this.#clock = new HandClock(now_ms);
    this.#driver = new ServerDriver(immediatePorts(this.#clock, this.#ports()), config, freshState(host, config));
    this.#driver.start();
    this.#clock.settle();
    this.#session = new QmgrSession(this.#world(), { abort: false, echo: false, parseOnly: false, silent: false }, []);
  }

  /** Carries out one request. contents: the base64 text that an import reads from standard input. */
  async run(request: string, contents: string): Promise<Rehearsed> {
    this.#printed = [];
    this.#contents = contents;
    const { kind } = await this.#session.run(request);
    return { ok: kind === "ok", text: this.#printed.join("").trim() };
  }

  /** Returns the lines of the whole configuration, as qmgr prints it. */
  async print(): Promise<readonly string[]> {
    const lines: string[] = [];
    for (const request of ["print server", "print node @default", "print sched @default", "print hook @default"])
      lines.push(...(await this.run(request, "")).text.split("\n"));
    return lines;
  }

  #ports(): OwnPorts {
    return {
      links: {
        toSched: () => undefined,
        toMoms: () => undefined,
        end: () => undefined,
        dropDaemons: () => undefined,
        setLimits: () => undefined,
        close: (done) => done(),
      },
      clients: {
        answer: (frames) => frames.forEach((frame) => this.#take(frame)),
        taken: (_token, then) => then(),
        of: (token) => ({ uid: 0, link: token }),
        open: () => [],
      },
    };
  }

  #take(frame: ClientFrame): void {
    if (frame.kind === "part") this.#parts.set(frame.token, [...(this.#parts.get(frame.token) ?? []), ...frame.items]);
    else this.#answers.set(frame.token, frame);
  }

  #ask(request: Request): { readonly answer: ClientFrame | undefined; readonly items: readonly unknown[] } {
    const token = ++this.#tokens;
    this.#driver.request(this.#root, request, token);
    this.#clock.settle();
    const [answer, items] = [this.#answers.get(token), this.#parts.get(token) ?? []];
    this.#answers.delete(token);
    this.#parts.delete(token);
    return { answer, items };
  }

  #world(): QmgrWorld {
    const refusal = (answer: ClientFrame | undefined): Refusal =>
      answer?.kind === "error" ? { ok: false, code: answer.code, text: answer.text } : { ok: false, code: 15010, text: "no answer" };
    const order = (request: Request): { readonly ok: true; readonly text?: string } | Refusal => {
      const { answer } = this.#ask(request);
      return answer?.kind === "ok" ? { ok: true, ...(answer.text === undefined ? {} : { text: answer.text }) } : refusal(answer);
    };
    return {
      out: (text) => void this.#printed.push(text),
      err: (text) => void this.#printed.push(text),
      connect: async () => ({
        manage: async (request) => order(request),
        status: async (request) => {
          const { answer, items } = this.#ask(request);
          return answer?.kind === "ok" ? { ok: true, items: items as readonly StatusItem[] } : refusal(answer);
        },
        importHook: async (request) => order(request),
        exportHook: async (request) => {
          const { answer } = this.#ask(request);
          return answer?.kind === "ok" ? { ok: true, content: contentOf(answer.value) } : refusal(answer);
        },
      }),
      ctime: timeText,
      stdinIsTty: false,
      closedFormulaFile: () => null,
      history: () => [],
      hookFiles: {
        read: async (file) => (file === "-" ? { content: this.#contents } : { fault: `${file}: import from files is not part of a dump` }),
        write: async () => ({ fault: "a dump exports nothing" }),
      },
    };
  }
}

const contentOf = (value: unknown): string =>
  typeof value === "object" && value !== null && "content" in value && typeof value.content === "string" ? value.content : "";
