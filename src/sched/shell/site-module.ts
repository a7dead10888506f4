// A site's own module (docs/modules.md): its file is checked like those of a sched_priv, loaded, examined, and called only
// through a guard that protects the scheduler from the module's faults.
//
// G1. A module that throws, or gives an illegal answer or decision, is reported once and is not called again.
// G2. A module's file and all directories above it belong to root or the scheduler's user, and nobody else can write them.

import { lstatSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Decision, Why } from "#protocol/sched-link.ts";
import { parseDecision, parseWhy } from "#protocol/schema-link.ts";
import { trustedFile } from "#support/trusted-file.ts";
import type { SiteModule } from "../policy/module-line.ts";
import type { JobEntry } from "../shapes/job-line.ts";
import type { LogRecord } from "../shapes/log-record.ts";
import type { Candidate, Cycle, Module, ModuleWorld, PolicyModule, ServiceModule, Stage } from "../shapes/module.ts";
import { STAGES } from "../shapes/module.ts";
import type { CallWatch } from "./module-watch.ts";

/** A module's file: its real path and its version. */
export type ModuleFile = { readonly path: string; readonly version: string };

/** Checks the file of a module (G2) and returns it. Throws an error with a text for the log. */
export function moduleFile({ path }: SiteModule, sched_priv: string): ModuleFile {
  const real = trustedFile(isAbsolute(path) ? path : join(sched_priv, path), [0, process.getuid?.() ?? 0]);
  const stat = lstatSync(real);
  return { path: real, version: `${stat.ino}-${stat.size}-${stat.mtimeMs}` };
}

/** Loads a module: the default export of its file or, if that is a function, what the function returns. Throws an error with a text for the log. */
export async function loadModule({ path, version }: ModuleFile, world: ModuleWorld): Promise<Module> {
  const url = pathToFileURL(path);
  // The parameter makes Node.js load a changed file again.
  url.searchParams.set("version", version);
  const loaded = (await import(url.href)) as { readonly default?: unknown };
  const made: unknown = typeof loaded.default === "function" ? await loaded.default(world) : loaded.default;
  const wrong = wrongShape(made);
  if (wrong !== null) throw new Error(wrong);
  return made as Module;
}

const FUNCTIONS = {
  policy: ["start", "classKey", "begin", "started", "makeRoom", "blocked", "triesEach", "stays", "wants", "planned", "end", "shutdown"],
  service: ["start", "cycle", "shutdown"],
} as const;

/** Returns the reason why a value cannot be a module; null: it can be one. */
function wrongShape(value: unknown): string | null {
  if (typeof value !== "object" || value === null) return "its default export is neither a module nor a function that makes one";
  const { kind = "policy", checks } = value as { kind?: unknown; checks?: unknown };
  if (kind !== "policy" && kind !== "service") return `its kind is ${String(kind)}, not policy or service`;
  const members = value as Record<string, unknown>;
  for (const name of FUNCTIONS[kind]) {
    if (members[name] !== undefined && typeof members[name] !== "function") return `${name} is not a function`;
  }
  if (checks === undefined || kind === "service") return null;
  if (!Array.isArray(checks)) return "checks is not an array";
  for (const check of checks as { stage?: unknown; check?: unknown }[]) {
    if (!STAGES.some((stage) => stage === check?.stage)) return `a check of an unknown stage ${String(check?.stage)}`;
    if (typeof check.check !== "function") return `the check of stage ${String(check.stage)} is not a function`;
  }
  return null;
}

/** Called once when a module fails. doing: what the module was doing. */
export type OnFault = (doing: string, error: unknown) => void;

/** Guards a policy module so that it cannot harm a cycle (G1). name: its name in the chain. */
export function guardPolicy(name: string, module: PolicyModule, watch: CallWatch, onFault: OnFault): PolicyModule {
  const call = guarded(watch, onFault);
  const facade = facades();
  const { classKey, makeRoom } = module;
  return {
    name,
    ...(classKey === undefined ? {} : { classKey: (job) => call("classKey", "", () => String(classKey.call(module, job))) }),
    begin: (cycle) => call("begin", undefined, () => module.begin?.(facade(cycle))),
    checks: (module.checks ?? []).map(({ stage, check }) => ({
      stage,
      check: (cycle, candidate) =>
        call(`the check of stage ${stage}`, null, () => whyOf(check.call(module, facade(cycle), candidate), name)),
    })),
    started: (cycle, candidate, placed) => call("started", undefined, () => module.started?.(facade(cycle), candidate, placed)),
    ...(makeRoom === undefined
      ? {}
      : { makeRoom: roomMaker(call, (cycle, candidate, why) => makeRoom.call(module, facade(cycle), candidate, why)) }),
    blocked: (cycle, candidate, why) =>
      call("blocked", "go on" as const, () => {
        const after: unknown = module.blocked?.(facade(cycle), candidate, why) ?? "go on";
        return after === "go on" ? after : (whyOf(after, name) ?? "go on");
      }),
    triesEach: (cycle) => call("triesEach", false, () => module.triesEach?.(facade(cycle)) === true),
    stays: (cycle, candidate) => call("stays", false, () => module.stays?.(facade(cycle), candidate) === true),
    wants: (cycle, candidate) => call("wants", false, () => module.wants?.(facade(cycle), candidate) === true),
    planned: (cycle, candidate, start_s) => call("planned", undefined, () => module.planned?.(facade(cycle), candidate, start_s)),
    end: (cycle) => call("end", undefined, () => module.end?.(facade(cycle))),
  };
}

/** Calls the module until its first fault. For the failing call, and after it, returns the value that changes nothing. */
function guarded(watch: CallWatch, onFault: OnFault): <T>(doing: string, neutral: T, act: () => T) => T {
  let off = false;
  return (doing, neutral, act) => {
    if (off) return neutral;
    try {
      return watch.call(doing, act);
    } catch (error) {
      off = true;
      onFault(doing, error);
      return neutral;
    }
  };
}

type Call = ReturnType<typeof guarded>;
type MakeRoom = NonNullable<PolicyModule["makeRoom"]>;

/** Guards makeRoom. If the module did not place the job, or has thrown, its changes are taken back. */
function roomMaker(call: Call, makeRoom: MakeRoom): MakeRoom {
  return (cycle, candidate, why) => {
    const { room } = cycle;
    const mark = room.mark();
    const placed = call("makeRoom", null, () => {
      const answer = makeRoom(cycle, candidate, why);
      if (answer !== null && answer !== room.occupied) throw new Error("what it returns is not what room.occupy gave");
      return answer;
    });
    if (placed === null) room.rollBack(mark);
    return placed;
  };
}

function whyOf(value: unknown, module: string): Why | null {
  if (value === null || value === undefined) return null;
  const why = parseWhy(value);
  if (typeof why === "string") throw new Error(`its answer is no reason: ${why}`);
  return { ...why, module };
}

/**
 * Returns a function that returns the cycle as a site's module sees it (a facade), in which everything that the module
 * writes is checked first. Each cycle has one facade.
 */
function facades(): (cycle: Cycle) => Cycle {
  let of: Cycle | null = null;
  let facade: Cycle | null = null;
  return (cycle) => {
    if (of !== cycle || facade === null) [of, facade] = [cycle, facadeOf(cycle)];
    return facade;
  };
}

function facadeOf(cycle: Cycle): Cycle {
  const { universe, book, policy, now_s, prime, qrun, periodic, probing, fairshare, ranks, server_taken } = cycle;
  return Object.freeze({
    universe,
    book,
    policy,
    now_s,
    prime,
    qrun,
    periodic,
    probing,
    fairshare,
    ranks,
    get complete() {
      return cycle.complete;
    },
    server_taken,
    log(record: LogRecord) {
      const { event, class: logClass, object, text } = record;
      if (!Number.isInteger(event)) throw new Error(`event ${String(event)} of a log record is not a whole number`);
      cycle.log({ event, class: String(logClass) as LogRecord["class"], object: String(object), text: String(text) });
    },
    decide(decision: Decision) {
      const checked = parseDecision(decision);
      if (typeof checked === "string") throw new Error(`its decision is none: ${checked}`);
      cycle.decide(checked);
    },
    check: (then: Cycle, candidate: Candidate, stages?: readonly Stage[]) => cycle.check(then, candidate, stages),
    planned: (candidate: Candidate, start_s: number) => cycle.planned(candidate, start_s),
    candidate: (entry: JobEntry) => cycle.candidate(entry),
    enterStarted: () => cycle.enterStarted(),
    later: (work: () => void) => cycle.later(work),
    logHere: () => cycle.logHere(),
    settle: () => cycle.settle(),
    room: cycle.room,
    failed_victims: cycle.failed_victims,
    keepsOn: () => cycle.keepsOn(),
    wakeAt(at_s: number) {
      if (!Number.isFinite(at_s)) throw new Error(`time ${String(at_s)} of a wish for a cycle is no number`);
      cycle.wakeAt(at_s);
    },
    tell(entry: JobEntry, why: Why) {
      const checked = parseWhy(why);
      if (typeof checked === "string") throw new Error(`its answer is no reason: ${checked}`);
      cycle.tell(entry, checked);
    },
  });
}

/** The time limits in seconds of a service module: of a call, and of its work after a cycle. */
export type ServiceLimits = { readonly alarm_s: number; readonly work_alarm_s: number };

/**
 * Guards a service module (G1). Its first fault is reported, and it is not called any more. It is also not called again
 * before a promise that it returned is settled.
 */
export function guardService(
  name: string,
  module: ServiceModule,
  { watch, limits, onFault }: { readonly watch: CallWatch; readonly limits: ServiceLimits; readonly onFault: OnFault },
): ServiceModule {
  let off = false;
  const call = async (doing: string, limit_s: number, act: () => void | Promise<void>): Promise<void> => {
    if (off) return;
    try {
      await watch.open(doing, limit_s, act);
    } catch (error) {
      off = true;
      onFault(doing, error);
    }
  };
  return {
    kind: "service",
    name,
    start: () => call("start", limits.alarm_s, () => module.start?.()),
    cycle: (report) => call("cycle", limits.work_alarm_s, () => module.cycle?.(report)),
    shutdown: () => call("shutdown", limits.alarm_s, () => module.shutdown?.()),
  };
}
