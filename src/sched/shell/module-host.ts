// Creates the chain of modules of a scheduler, and calls its modules. The modules are created when the files of sched_priv are read. They are called
// at the start of the scheduler, in each cycle, and at the end of the scheduler. A faulty module leaves the chain. Faults are reported in the log and, as a problem,
// in the scheduler's comment.
//
//   named --file in order, loaded, start--> in the chain --throws--> out (told)      files read again: what changed is shut down and made anew,
//     `------------ anything wrong --------------------------------> out (told)      what was out is tried again
//
// H1. No cycle begins while a chain is being created. Otherwise a module that forbids something would be missing in the first cycle.
// H2. A service module is called for a cycle only when it has finished its work on the last one.
// H3. A module because of which the process was ended (module-watch.ts) stays out of the chain until its file or options change, or until
//     SIGHUP lets the files be read again.

import { messageOf } from "#support/caught.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { SERVICES } from "../modules/index.ts";
import { optionsOf, type SiteModule, type WrongModule } from "../policy/module-line.ts";
import type { CycleReport, Module, ModuleOptions, ModuleWorld, OptionRow, PolicyModule, ServiceModule } from "../shapes/module.ts";
import { type CallWatch, keepStuck, lateText, type ModuleWatch, readStuck, type Stuck, UNWATCHED } from "./module-watch.ts";
import { builtInService } from "./services/index.ts";
import { guardPolicy, guardService, loadModule, type ModuleFile, moduleFile } from "./site-module.ts";

/** The chain of modules as sched_config describes it. */
export type ChainConfig = {
  readonly modules: readonly string[];
  readonly site_modules: readonly SiteModule[];
  readonly wrong_modules: readonly WrongModule[];
  readonly module_options: ModuleOptions;
  /** time limits in seconds of a call of a site's module, and of the work of a service module after a cycle; 0: none */
  readonly module_alarm_s: number;
  readonly module_work_alarm_s: number;
};

export type HostOptions = {
  readonly world: Omit<ModuleWorld, "name" | "options" | "problem" | "log">;
  readonly watch: ModuleWatch;
  record(event: number, object: string, text: string): void;
  /** Called with all problems in one text when they have changed; null: there are none any more. */
  onProblem(text: string | null): void;
  /** Called when the policy modules have changed outside of load(), because one has left the chain. */
  onChange(): void;
};

/** A module in the chain. from: a text of its file, version and options, by which changes are noticed. */
type Entry = {
  readonly name: string;
  readonly from: string;
  readonly policy: PolicyModule | null;
  readonly service: ServiceModule | null;
  /** time since which the module has been working on a cycle; null: it does not work */
  busy_ms: number | null;
  out: boolean;
  shutdown(): Promise<void>;
};

const SHUTDOWN_MS_MAX = 3000;
const PROBLEM_CHARS_MAX = 500;

/** The chain of modules of a scheduler. It stays in use until shutdown(). */
export class ModuleHost {
  readonly #options: HostOptions;
  readonly #problems = new Map<string, string>();
  #entries: Entry[] = [];
  #told: string | null = null;
  #work_alarm_s = 0;

  constructor(options: HostOptions) {
    this.#options = options;
  }

  /** Creates the chain of a configuration. Modules that have not changed stay as they are. */
  async load(config: ChainConfig): Promise<void> {
    const before = this.#entries;
    const wrong = new Map(config.wrong_modules.map(({ name, text }) => [name, `left out: ${text}`]));
    for (const [name, text] of [...this.#problems])
      if (text !== wrong.get(name) && !before.some((entry) => entry.name === name && !entry.out)) this.#problems.delete(name);
    this.#work_alarm_s = config.module_work_alarm_s;
    if (config.site_modules.length > 0) await this.#options.watch.begin(this.#sched_priv, config.module_alarm_s);
    this.#entries = await this.#chain(config, before);
    for (const entry of before) if (!this.#entries.includes(entry)) await this.#end(entry);
    for (const name of [...this.#problems.keys()]) if (!config.modules.includes(name) && !wrong.has(name)) this.#problems.delete(name);
    for (const [name, text] of wrong) this.#setProblem(name, text);
    this.#tell();
  }

  /** Allows modules to be tried again that were left out because a call did not return (H3). They are tried when the chain is created next. */
  forgive(): void {
    keepStuck(this.#sched_priv, []);
  }

  /** Returns the site's policy modules that are in the chain. */
  policies(): ReadonlyMap<string, PolicyModule> {
    return new Map(this.#entries.flatMap(({ name, policy, out }) => (policy === null || out ? [] : [[name, policy] as const])));
  }

  /** Reports a finished cycle to the service modules. */
  cycleOver(report: CycleReport): void {
    for (const entry of this.#entries) if (entry.service !== null && !entry.out) void this.#serve(entry, report);
  }

  /** Returns all problems in one text; null: there are none. */
  problem(): string | null {
    const text = [...this.#problems].map(([name, what]) => `module ${name}: ${what}`).join("; ");
    return text === "" ? null : text.slice(0, PROBLEM_CHARS_MAX);
  }

  async shutdown(): Promise<void> {
    const late = new Promise<void>((resolve) => setTimeout(resolve, SHUTDOWN_MS_MAX).unref());
    await Promise.race([late, Promise.all(this.#entries.map((entry) => this.#end(entry))).then(() => undefined)]);
    this.#entries = [];
    await this.#options.watch.stop();
  }

  get #sched_priv(): string {
    return this.#options.world.sched_priv();
  }

  /** Returns the modules of a configuration in the order of the configuration: those of `before` that have not changed, and new ones for the others. */
  async #chain(config: ChainConfig, before: readonly Entry[]): Promise<Entry[]> {
    const sites = new Map(config.site_modules.map((site) => [site.name, site]));
    const stuck = readStuck(this.#sched_priv);
    const still: Stuck[] = [];
    const next: Entry[] = [];
    for (const name of config.modules) {
      const site = sites.get(name);
      if (site === undefined && !SERVICES.includes(name)) continue;
      const file = site === undefined ? null : this.#fileOf(name, site);
      if (site !== undefined && file === null) continue;
      const from = JSON.stringify([file, [...optionsOf(config.module_options, name)]]);
      const same = before.find((entry) => entry.name === name && entry.from === from && !entry.out);
      const noted = stuck.find((one) => one.name === name && one.from === from);
      if (noted !== undefined) {
        still.push(noted);
        this.#setProblem(name, `left out: ${noted.doing}: ${lateText(noted.alarm_s)} (the scheduler was ended for it)`);
        continue;
      }
      if (same === undefined) this.#problems.delete(name);
      const entry = same ?? (await this.#make(name, file, from, config));
      if (entry !== null) next.push(entry);
    }
    if (still.length < stuck.length) keepStuck(this.#sched_priv, still);
    return next;
  }

  #fileOf(name: string, site: SiteModule): ModuleFile | null {
    try {
      return moduleFile(site, this.#sched_priv);
    } catch (error) {
      this.#faulty(name, "", error);
      return null;
    }
  }

  /** Loads and starts a module. Returns null if that is not possible; the fault is then reported. */
  async #make(name: string, file: ModuleFile | null, from: string, config: ChainConfig): Promise<Entry | null> {
    let doing = "";
    const calls = file === null ? UNWATCHED : this.#options.watch.of(name, from);
    const { module_alarm_s } = config;
    try {
      const own = this.#worldOf(name, config);
      const module = file === null ? builtInService(own) : await calls.open("loading", module_alarm_s, () => loadModule(file, own));
      this.#tellUnknownOptions(name, module.options, config);
      doing = "start";
      await calls.open("start", module_alarm_s, () => module.start?.());
      return this.#enter(name, from, module, { calls, config });
    } catch (error) {
      const isLate = (error as Error | null)?.message === lateText(module_alarm_s);
      this.#faulty(name, doing === "" && isLate ? "loading" : doing, error);
      return null;
    }
  }

  #worldOf(name: string, { module_options }: ChainConfig): ModuleWorld {
    const { world, record } = this.#options;
    return {
      ...world,
      name,
      options: optionsOf(module_options, name),
      log: (text, event = LOG_EVENT.SCHED) => record(event, name, String(text)),
      problem: (text) => this.#setProblem(name, text === null ? null : String(text)),
    };
  }

  #tellUnknownOptions(name: string, rows: readonly OptionRow[] | undefined, { module_options }: ChainConfig): void {
    if (!Array.isArray(rows)) return;
    for (const key of optionsOf(module_options, name).keys()) {
      if (rows.some((row: OptionRow) => row.name === key)) continue;
      const names = rows.map((row: OptionRow) => row.name).join(", ");
      this.#options.record(LOG_EVENT.SCHED, name, `unknown option ${name}.${key}; there are ${names}`);
    }
  }

  #enter(name: string, from: string, module: Module, how: { readonly calls: CallWatch; readonly config: ChainConfig }): Entry {
    const onFault = (doing: string, error: unknown): void => this.#faulty(name, doing, error);
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

  /** Removes a faulty module from the chain until the files are read again, and reports the fault. */
  #faulty(name: string, doing: string, error: unknown): void {
    const { record, onChange } = this.#options;
    const text = error instanceof Error ? error.message : String(error);
    for (const entry of this.#entries) if (entry.name === name) entry.out = true;
    this.#setProblem(name, `left out: ${doing === "" ? "" : `${doing}: `}${text.split("\n", 1)[0]}`);
    if (error instanceof Error && error.stack !== undefined) record(LOG_EVENT.DEBUG, name, error.stack);
    onChange();
  }

  #setProblem(name: string, text: string | null): void {
    if (text === (this.#problems.get(name) ?? null)) return;
    if (text === null) this.#problems.delete(name);
    else this.#problems.set(name, text);
    this.#options.record(LOG_EVENT.ERROR, name, text === null ? "the problem is over" : text);
    this.#tell();
  }

  #tell(): void {
    const text = this.problem();
    if (text === this.#told) return;
    this.#told = text;
    this.#options.onProblem(text);
  }

  async #serve(entry: Entry, report: CycleReport): Promise<void> {
    const now_ms = this.#options.world.now_ms();
    if (entry.busy_ms !== null) {
      const limit_s = this.#work_alarm_s;
      const is_late = limit_s > 0 && Math.floor((now_ms - entry.busy_ms) / 1000) > limit_s;
      if (is_late) this.#setProblem(entry.name, `at work on one cycle for more than ${limit_s} s`);
      return;
    }
    entry.busy_ms = now_ms;
    await entry.service?.cycle?.(report);
    entry.busy_ms = null;
  }

  async #end(entry: Entry): Promise<void> {
    try {
      await entry.shutdown();
    } catch (error) {
      this.#options.record(LOG_EVENT.ERROR, entry.name, `shutdown: ${messageOf(error)}`);
    }
  }
}
