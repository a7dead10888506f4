// The pbs module of JavaScript hooks. It is made inside the context of the hook from its source text (host-main.ts), so that
// it gives no access to the program of the hook host.
//
// J1. Only texts pass between the context and the hook host: the input and the answer of a hook are JSON, and so are a query
//     to the server and its result.
// J2. The module consists of classes whose source texts are self-contained: each uses only the language, its own members and
//     its constructor arguments. The files of these classes import only types from each other. This file puts the classes
//     together.

import type { HookInput, HookLog, HookRequests } from "../run/hook-input.ts";
import { HookEvent, type HookFacts } from "./event.ts";
import { HookObjectView } from "./object.ts";
import { HookObjects } from "./objects.ts";
import { HookResourceList, type ResourceTexts } from "./resource-list.ts";
import { HookServer } from "./server.ts";
import { HookValues } from "./values.ts";
import { HookVerdict } from "./verdict.ts";

/** The input that the hook host passes for one run of a hook, as JSON. */
type RunText = {
  /** types of attributes by kind of object */
  readonly tables: { readonly [kind: string]: { readonly [name: string]: string } };
  /** entries of pbs.conf */
  readonly conf: { readonly [name: string]: string };
  readonly events: readonly string[];
  readonly run: {
    readonly hook: HookFacts;
    readonly input: HookInput;
    /** types of all resources */
    readonly resources: ResourceTexts;
    /** text of the hook's configuration file; null: the hook has none */
    readonly config: string | null;
  };
};

/** What a pbs module needs from the context in which it is made. */
export type PbsPlace = {
  /** the global object of the context */
  readonly global: { [name: string]: unknown };
  /** a RunText as JSON */
  readonly runText: string;
  /** sends a query to the daemon as JSON and returns the result as JSON */
  readonly ask: (question: string) => string;
};

class PbsModule {
  /** Largest number of characters that a script may write to its console. The line that exceeds it is the last one kept. */
  static readonly #OUTPUT_CHARS_MAX = 65536;
  static readonly #LEVELS = {
    LOG_ERROR: 4,
    LOG_WARNING: 4,
    LOG_DEBUG: 4,
    EVENT_ERROR: 1,
    EVENT_SYSTEM: 2,
    EVENT_ADMIN: 4,
    EVENT_JOB: 8,
    EVENT_SECURITY: 32,
    EVENT_SCHED: 64,
    EVENT_DEBUG: 128,
    EVENT_DEBUG2: 256,
    EVENT_RESV: 512,
    EVENT_DEBUG3: 1024,
  };
  readonly #texts: RunText;
  readonly #values: HookValues;
  readonly #verdict: HookVerdict;
  readonly #objects: HookObjects;
  readonly #event: HookEvent;
  readonly #server: HookServer;
  readonly #logs: HookLog[] = [];
  #output = "";
  #reboot: string | undefined;

  /** Puts `pbs` and `console` into the global object. */
  constructor(parts: PbsParts, { global, runText, ask }: PbsPlace) {
    const texts: RunText = JSON.parse(runText);
    const { input, hook, resources } = texts.run;
    this.#texts = texts;
    this.#values = new parts.HookValues();
    this.#verdict = new parts.HookVerdict();
    const types = { tables: texts.tables, resources, values: this.#values, HookResourceList: parts.HookResourceList };
    this.#objects = new parts.HookObjects({ types, first_host: input.first_host !== false, HookObjectView: parts.HookObjectView });
    this.#event = new parts.HookEvent(input, hook, this.#objects, this.#verdict);
    this.#server = new parts.HookServer(input.server, this.#objects, ask);
    global["pbs"] = Object.freeze({ ...PbsModule.#LEVELS, ...this.#eventNames(), ...this.#functions() });
    global["console"] = this.#console();
  }

  /** Returns pbs.QUEUEJOB and so on: the values of event().type. */
  #eventNames(): { readonly [name: string]: string } {
    return Object.fromEntries(this.#texts.events.map((event) => [event.toUpperCase(), event]));
  }

  #functions(): { readonly [name: string]: unknown } {
    const { conf, run } = this.#texts;
    return {
      event: () => this.#event.proxy,
      server: () => this.#server.view(),
      duration: (value?: unknown) => this.#values.duration(value),
      size: (value?: unknown) => this.#values.size(value),
      logmsg: (level: unknown, message: unknown) => this.#log(level, null, message),
      logjobmsg: (job: unknown, message: unknown) => this.#log(4, String(job), message),
      get_local_nodename: () => run.input.node,
      get_pbs_conf: () => ({ ...conf }),
      /** text of the hook's configuration file; null: the hook has none */
      config: run.config,
      reboot: (command: unknown = "") => {
        this.#reboot = String(command);
        this.#verdict.end();
      },
    };
  }

  #log(level: unknown, job: string | null, message: unknown): void {
    this.#logs.push({ level: typeof level === "number" ? Math.trunc(level) : 4, job, text: String(message) });
  }

  #console(): object {
    const print = (...words: unknown[]): void => {
      if (this.#output.length < PbsModule.#OUTPUT_CHARS_MAX) this.#output += `${words.map(String).join(" ")}\n`;
    };
    return Object.freeze({ log: print, info: print, warn: print, error: print, debug: print });
  }

  /** Returns the answer as JSON. threw: whether the script ended by throwing `thrown`. */
  finish(threw: boolean, thrown: unknown): string {
    const told = { logs: this.#logs, output: this.#output };
    if (threw && !this.#verdict.isEnd(thrown)) return JSON.stringify({ verdict: "error", error: PbsModule.#errorText(thrown), ...told });
    const { verdict, message, code } = this.#verdict;
    const keep = verdict === "accept" || this.#texts.run.input.keep_rejected === true;
    const changes = keep ? this.#event.changes() : {};
    return JSON.stringify({ verdict, message, code, changes, requests: this.#requests(), ...told });
  }

  #requests(): Partial<HookRequests> {
    const cycle = this.#server.wants_cycle ? { restart_cycle: true } : {};
    return { jobs: this.#objects.wishes, ...cycle, ...(this.#reboot === undefined ? {} : { reboot: this.#reboot }) };
  }

  static #errorText(thrown: unknown): string {
    const stack = (thrown as { readonly stack?: unknown } | null | undefined)?.stack;
    // The stack frames below those of the script belong to the hook host.
    return typeof stack === "string" ? (stack.split(/\n\s+at Script\.runInContext/)[0] ?? "") : String(thrown);
  }
}

const PARTS = { HookValues, HookVerdict, HookResourceList, HookObjectView, HookObjects, HookEvent, HookServer, PbsModule };
export type PbsParts = typeof PARTS;

/** Source text of an expression. A context that evaluates it gets a PbsParts. */
export const PBS_TEXT = `({ ${Object.entries(PARTS)
  .map(([name, part]) => `${name}: ${part.toString()}`)
  .join(",\n")} })`;
