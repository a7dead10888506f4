// The target of the fuzzers: a server with a few objects, its replies and a view of its state. Nothing is stored; effects are
// dropped.

import assert from "node:assert/strict";
import { ATTRIBUTE_TABLES } from "#model/tables/tables.ts";
import { alterValue, parseValue, renderValue } from "#model/values/index.ts";
import type { ManagedObject, ManagerRequest, Request, StatusItem } from "#protocol/messages.ts";
import { QmgrSession } from "#qmgr/session/session.ts";
import type { Core } from "#server/core/core.ts";
import { prepareStart } from "#server/core/first-start.ts";
import { checkInvariants } from "#server/core/invariants.ts";
import { HandClock } from "#server/driver/hand-clock.ts";
import { immediatePorts } from "#server/driver/immediate-ports.ts";
import type { StorePort } from "#server/driver/ports.ts";
import { ServerDriver } from "#server/driver/server-driver.ts";
import type { ClientFrame } from "#server/engine/batch.ts";
import type { Peer } from "#server/engine/identity.ts";
import { freshState } from "#server/state/load.ts";
import { CONFIG, HOST } from "#sim/server-process.ts";
import { START_MS } from "#sim/world.ts";

export const ROOT: Peer = { user: "root", uid: 0, groups: ["root"], host: HOST, root: true };
export const ALICE: Peer = { user: "alice", uid: 1000, groups: ["users"], host: HOST, root: false };

export type Reply =
  | { readonly ok: true; readonly value?: unknown; readonly text?: string }
  | { readonly ok: false; readonly code: number; readonly text: string | null };

export type Target = {
  readonly core: Core;
  /** returns the answer; undefined: it comes later (a job must end first). items: of a status reply */
  ask(who: Peer, request: Request): { readonly reply: Reply | undefined; readonly items: readonly StatusItem[] };
  /** runs one line of qmgr; returns its exit status and its output */
  qmgr(who: Peer, line: string): Promise<{ readonly status: number; readonly text: string }>;
  /** drops accumulated frames and effects */
  drain(): void;
  /** number of batches with rows so far */
  readonly written: number;
};

/** A core after its first start. lines: lines of qmgr that a manager runs. */
export async function target(lines: readonly string[] = []): Promise<Target> {
  const clock = new HandClock(START_MS);
  const replies = new Map<number, Reply>();
  const parts = new Map<number, StatusItem[]>();
  let token = 1;
  let written = 0;
  const answer = (frames: readonly ClientFrame[]): void => {
    for (const frame of frames) {
      if (frame.kind === "part") parts.set(frame.token, [...(parts.get(frame.token) ?? []), ...(frame.items as StatusItem[])]);
      else {
        assert.ok(!replies.has(frame.token), "a second answer");
        const { token: to, kind, ...rest } = frame;
        replies.set(to, { ...rest, ok: kind === "ok" } as Reply);
      }
    }
  };
  const world = immediatePorts(clock, {
    links: {
      toSched: () => undefined,
      toMoms: () => undefined,
      end: () => undefined,
      dropDaemons: () => undefined,
      setLimits: () => undefined,
      close: (done) => done(),
    },
    clients: { answer, taken: (_token, then) => then(), of: (of) => ({ uid: 0, link: of }), open: () => [] },
    hooks: { run: () => undefined, close: () => undefined },
    // A server that was told to end continues to answer, because it waits for its schedulers.
    processes: { stopAll: () => undefined },
    resolve: (host, done) => done(/^n\d/.test(host) ? host : null),
  });
  const commit: StorePort["commit"] = (_rows, done) => {
    written++;
    done(null);
  };
  const driver = new ServerDriver({ ...world, store: { ...world.store, commit } }, CONFIG, freshState(HOST, CONFIG));
  const { core } = driver;
  prepareStart(core, { start: "warm", fresh: true, node: null });
  driver.start();
  const drain = (): void => {
    driver.do(() => undefined);
    clock.settle();
  };
  drain();

  const ask: Target["ask"] = (who, request) => {
    const own = token++;
    driver.request(who, request, own);
    drain();
    const reply = replies.get(own);
    const items = parts.get(own) ?? [];
    replies.delete(own);
    parts.delete(own);
    if (reply?.ok === false) assert.ok(reply.code > 15000 && reply.code < 15300, `refused with ${reply.code} ${reply.text}`);
    return { reply, items };
  };

  const qmgr: Target["qmgr"] = async (who, line) => {
    let text = "";
    const write = (part: string): void => {
      text += part;
    };
    const server = {
      manage: async (request: ManagerRequest) => answered(ask(who, request).reply, line),
      importHook: async (request: Request) => answered(ask(who, request).reply, line),
      exportHook: async (request: Request) => {
        const answer = answered(ask(who, request).reply, line);
        return answer.ok ? { ok: true as const, content: (answer.value as { readonly content: string }).content } : answer;
      },
      status: async (request: Extract<Request, { kind: "status" }>) => {
        const { reply, items } = ask(who, request);
        const answer = answered(reply, line);
        return answer.ok ? { ok: true as const, items } : answer;
      },
    };
    const shown = {
      out: write,
      err: write,
      ctime: CONFIG.ctime,
      stdinIsTty: true,
      closedFormulaFile: () => null,
      history: () => [],
      hookFiles: { read: async () => ({ content: "" }), write: async () => ({}) },
      connect: async (name: string) => (["", "default", HOST].includes(name) ? server : undefined),
    };
    const session = new QmgrSession(shown as never, { abort: false, echo: false, parseOnly: false, silent: false }, []);
    const { status } = await session.run(line);
    return { status, text };
  };
  const made: Target = {
    core,
    ask,
    qmgr,
    drain,
    get written() {
      return written;
    },
  };
  for (const line of lines) {
    const { status, text } = await qmgr(ROOT, line);
    assert.equal(status, 0, `${line}: ${text}`);
  }
  return made;
}

function answered(reply: Reply | undefined, line: string): Reply {
  assert.ok(reply !== undefined, `no answer to ${line}`);
  return reply;
}

/** No accepted nonsense: the invariants hold, and parsing the shown text of every value gives that value. */
export function checkState({ core }: Target): void {
  checkInvariants(core.state);
  const { state } = core;
  const objects: readonly (readonly [keyof typeof ATTRIBUTE_TABLES, string, { readonly [name: string]: unknown }])[] = [
    ["server", "", state.server],
    ...[...state.queues.values()].map((queue) => ["queue", queue.name, queue.attrs] as const),
    ...[...state.vnodes.values()].map((vnode) => ["node", vnode.name, vnode.attrs] as const),
    ...[...state.scheds.values()].map((sched) => ["sched", sched.name, sched.attrs] as const),
    ...[...state.jobs.values()].map((job) => ["job", job.id, job.attrs] as const),
  ];
  for (const [type, name, attrs] of objects) {
    for (const [attribute, value] of Object.entries(attrs)) {
      const def = ATTRIBUTE_TABLES[type].byName(attribute);
      assert.ok(def !== undefined || INTERNAL.has(attribute), `${type} ${name}: ${attribute} is no attribute`);
      // A node's state also contains words that nobody may set.
      if (def === undefined || def.set === "pbs" || def.type === "node_state") continue;
      const shown = renderValue(def, value as never, state.resources);
      const where = `${type} ${name}: ${attribute} = ${JSON.stringify(value)}, shown as ${JSON.stringify(shown)}`;
      if (typeof shown === "string") assert.deepEqual(parseValue(def, shown, state.resources), value, where);
      else if (Array.isArray(shown))
        assert.deepEqual(
          again(
            def,
            shown.map((entry) => [undefined, entry]),
            state.resources,
          ),
          value,
          where,
        );
      else
        assert.deepEqual(
          again(
            def,
            Object.entries(shown).flatMap(([resource, text]) => [text].flat().map((entry) => [resource, entry] as const)),
            state.resources,
          ),
          value,
          where,
        );
    }
  }
}

/** Internal attributes of the server that no table lists. */
const INTERNAL: ReadonlySet<string> = new Set(["from_mom"]);

/** The value after setting the entries one by one. */
function again(
  def: Parameters<typeof alterValue>[0],
  entries: readonly (readonly [resource: string | undefined, text: string])[],
  resources: Core["state"]["resources"],
): unknown {
  let value: Parameters<typeof alterValue>[1];
  for (const [resource, text] of entries) {
    value = alterValue(def, value, { op: "+=", value: text, ...(resource === undefined ? {} : { resource }) }, resources);
  }
  return value;
}

/** The output of `print` for everything, without comments. */
export async function printed(of: Target): Promise<string[]> {
  const lines: string[] = [];
  for (const what of ["server", "node @default", "sched"]) {
    const { text } = await of.qmgr(ROOT, `print ${what}`);
    lines.push(...text.split("\n").filter((line) => /^(create|set) /.test(line)));
  }
  return lines;
}

export type { ManagedObject };
