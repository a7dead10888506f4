// The chain at work in a scheduler: modules are made when the files of sched_priv are read, hear of start, cycles and shutdown, and leave it when they are
// faulty. What is wrong with them is told in the log and, as a problem, in the scheduler's comment.
//
//   named --file in order, loaded, start--> in the chain --throws--> out (told)      files read again: what changed is shut down and made anew,
//     `------------ anything wrong --------------------------------> out (told)      what was out is tried again
//
// H1. No cycle begins while a chain is being made: a module that forbids something is not left out of the first cycle.
// H2. A service module is called for a cycle only when it is done with the last one.
// H3. A module for whose sake the process was ended (module-watch.ts) stays out until its file or options change, or the files are read again by SIGHUP.

import { messageOf } from "#support/caught.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { SERVICES } from "../modules/index.ts";
import { optionsOf, type SiteModule, type WrongModule } from "../policy/module-line.ts";
import type { CycleReport, Module, ModuleOptions, ModuleWorld, OptionRow, PolicyModule, ServiceModule } from "../shapes/module.ts";
import { type CallWatch, keepStuck, lateText, type ModuleWatch, readStuck, type Stuck, UNWATCHED } from "./module-watch.ts";
import { builtInService } from "./services/index.ts";
import { guardPolicy, guardService, loadModule, type ModuleFile, moduleFile } from "./site-module.ts";

/** What sched_config says about the chain. */
export type ChainConfig = {
  readonly modules: readonly string[];
  readonly site_modules: readonly SiteModule[];
  readonly wrong_modules: readonly WrongModule[];
  readonly module_options: ModuleOptions;
  /** how long a call of a site's module may take, and its work on a cycle (seconds; 0: as long as it likes) */
  readonly module_alarm_s: number;
  readonly module_work_alarm_s: number;
};

export type HostOptions = {
  readonly world: Omit<ModuleWorld, "name" | "options" | "problem" | "log">;
  readonly watch: ModuleWatch;
  record(event: number, object: string, text: string): void;
  /** all problems in one text; null: there are none any more */
  onProblem(text: string | null): void;
  /** the policy modules have changed outside of load(): one is out */
  onChange(): void;
};

export type ModuleHost = {
  /** Creates the chain of a configuration; unchanged modules stay. */
  load(config: ChainConfig): Promise<void>;
  /** modules that had stood still are tried again when the chain is made next (H3) */
  forgive(): void;
  /** the site's policy modules that are in the chain */
  policies(): ReadonlyMap<string, PolicyModule>;
  /** reports a finished cycle to the service modules */
  cycleOver(report: CycleReport): void;
  problem(): string | null;
  shutdown(): Promise<void>;
};

/** A module in the chain. from: file, version and options, to detect changes. */
type Entry = {
  readonly name: string;
  readonly from: string;
  readonly policy: PolicyModule | null;
  readonly service: ServiceModule | null;
  /** since when it is at work on a cycle; null: it is not */
  busy_ms: number | null;
  out: boolean;
  shutdown(): Promise<void>;
};

const SHUTDOWN_MS_MAX = 3000;
const PROBLEM_CHARS_MAX = 500;

export function moduleHost({ world, watch, record, onProblem, onChange }: HostOptions): ModuleHost {
  let entries: Entry[] = [];
  const problems = new Map<string, string>();
  let told: string | null = null;
  let work_alarm_s = 0;

  const problemText = (): string | null => {
    const text = [...problems].map(([name, what]) => `module ${name}: ${what}`).join("; ");
    return text === "" ? null : text.slice(0, PROBLEM_CHARS_MAX);
  };

  function setProblem(name: string, text: string | null): void {
    if (text === (problems.get(name) ?? null)) return;
    if (text === null) problems.delete(name);
    else problems.set(name, text);
    record(LOG_EVENT.ERROR, name, text === null ? "the problem is over" : text);
    tell();
  }

  function tell(): void {
    const text = problemText();
    if (text === told) return;
    told = text;
    onProblem(text);
  }

  function worldOf(name: string, { module_options }: ChainConfig): ModuleWorld {
    return {
      ...world,
      name,
      options: optionsOf(module_options, name),
      log: (text, event = LOG_EVENT.SCHED) => record(event, name, String(text)),
      problem: (text) => setProblem(name, text === null ? null : String(text)),
    };
  }

  /** It is out of the chain until the files are read again. */
  function faulty(name: string, doing: string, error: unknown): void {
    const text = error instanceof Error ? error.message : String(error);
    for (const entry of entries) if (entry.name === name) entry.out = true;
    setProblem(name, `left out: ${doing === "" ? "" : `${doing}: `}${text.split("\n", 1)[0]}`);
    if (error instanceof Error && error.stack !== undefined) record(LOG_EVENT.DEBUG, name, error.stack);
    onChange();
  }

  function enter(name: string, from: string, module: Module, how: { readonly calls: CallWatch; readonly config: ChainConfig }): Entry {
    const onFault = (doing: string, error: unknown): void => faulty(name, doing, error);
    const { calls, config } = how;
    if (module.kind === "service") {
      const limits = { alarm_s: config.module_alarm_s, work_alarm_s: config.module_work_alarm_s };
      const service = guardService(name, module, { watch: calls, limits, onFault });
      return { name, from, policy: null, service, busy_ms: null, out: false, shutdown: async () => service.shutdown?.() };
    }
    return {
      name,
      from,
      policy: guardPolicy(name, module, calls, onFault),
      service: null,
      busy_ms: null,
      out: false,
      shutdown: async () => calls.call("shutdown", () => module.shutdown?.()),
    };
  }

  /** Returns null if the module cannot be loaded; the fault is reported. */
  async function make(name: string, file: ModuleFile | null, from: string, config: ChainConfig): Promise<Entry | null> {
    let doing = "";
    const calls = file === null ? UNWATCHED : watch.of(name, from);
    const { module_alarm_s } = config;
    try {
      const own = worldOf(name, config);
      const module = file === null ? builtInService(own) : await calls.open("loading", module_alarm_s, () => loadModule(file, own));
      tellUnknownOptions(name, module.options, config);
      doing = "start";
      await calls.open("start", module_alarm_s, () => module.start?.());
      return enter(name, from, module, { calls, config });
    } catch (error) {
      const isLate = (error as Error | null)?.message === lateText(module_alarm_s);
      faulty(name, doing === "" && isLate ? "loading" : doing, error);
      return null;
    }
  }

  function tellUnknownOptions(name: string, rows: readonly OptionRow[] | undefined, { module_options }: ChainConfig): void {
    if (!Array.isArray(rows)) return;
    for (const key of optionsOf(module_options, name).keys()) {
      if (rows.some((row: OptionRow) => row.name === key)) continue;
      record(LOG_EVENT.SCHED, name, `unknown option ${name}.${key}; there are ${rows.map((row: OptionRow) => row.name).join(", ")}`);
    }
  }

  async function load(config: ChainConfig): Promise<void> {
    const before = entries;
    const wrong = new Map(config.wrong_modules.map(({ name, text }) => [name, `left out: ${text}`]));
    for (const [name, text] of [...problems])
      if (text !== wrong.get(name) && !before.some((entry) => entry.name === name && !entry.out)) problems.delete(name);
    const next: Entry[] = [];
    const sites = new Map(config.site_modules.map((site) => [site.name, site]));
    work_alarm_s = config.module_work_alarm_s;
    if (sites.size > 0) await watch.begin(world.sched_priv(), config.module_alarm_s);
    const stuck = readStuck(world.sched_priv());
    const still: Stuck[] = [];
    for (const name of config.modules) {
      const site = sites.get(name);
      if (site === undefined && !SERVICES.includes(name)) continue;
      const file = site === undefined ? null : fileOf(name, site);
      if (site !== undefined && file === null) continue;
      const from = JSON.stringify([file, [...optionsOf(config.module_options, name)]]);
      const same = before.find((entry) => entry.name === name && entry.from === from && !entry.out);
      const noted = stuck.find((one) => one.name === name && one.from === from);
      if (noted !== undefined) {
        still.push(noted);
        setProblem(name, `left out: ${noted.doing}: ${lateText(noted.alarm_s)} (the scheduler was ended for it)`);
        continue;
      }
      if (same === undefined) problems.delete(name);
      const entry = same ?? (await make(name, file, from, config));
      if (entry !== null) next.push(entry);
    }
    entries = next;
    if (still.length < stuck.length) keepStuck(world.sched_priv(), still);
    for (const entry of before) if (!next.includes(entry)) await end(entry);
    for (const name of [...problems.keys()]) if (!config.modules.includes(name) && !wrong.has(name)) problems.delete(name);
    for (const [name, text] of wrong) setProblem(name, text);
    tell();
  }

  function fileOf(name: string, site: SiteModule): ModuleFile | null {
    try {
      return moduleFile(site, world.sched_priv());
    } catch (error) {
      faulty(name, "", error);
      return null;
    }
  }

  async function end(entry: Entry): Promise<void> {
    try {
      await entry.shutdown();
    } catch (error) {
      record(LOG_EVENT.ERROR, entry.name, `shutdown: ${messageOf(error)}`);
    }
  }

  async function serve(entry: Entry, report: CycleReport): Promise<void> {
    if (entry.busy_ms !== null) {
      const waits_s = Math.floor((world.now_ms() - entry.busy_ms) / 1000);
      if (work_alarm_s > 0 && waits_s > work_alarm_s) setProblem(entry.name, `at work on one cycle for more than ${work_alarm_s} s`);
      return;
    }
    entry.busy_ms = world.now_ms();
    await entry.service?.cycle?.(report);
    entry.busy_ms = null;
  }

  return {
    load,
    forgive: () => keepStuck(world.sched_priv(), []),
    policies: () => new Map(entries.flatMap(({ name, policy, out }) => (policy === null || out ? [] : [[name, policy] as const]))),
    cycleOver(report) {
      for (const entry of entries) if (entry.service !== null && !entry.out) void serve(entry, report);
    },
    problem: problemText,
    async shutdown() {
      const late = new Promise<void>((resolve) => setTimeout(resolve, SHUTDOWN_MS_MAX).unref());
      await Promise.race([late, Promise.all(entries.map(end)).then(() => undefined)]);
      entries = [];
      await watch.stop();
    },
  };
}
