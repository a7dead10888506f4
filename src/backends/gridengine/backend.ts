// Runners as tasks of array jobs of Grid Engine, through its commands.
//
// I1. As with Slurm, before an order is submitted again, jobs with its tag are looked for, also among those that ended lately. A second submission with the same tag
//     is deleted.
// I2. qsub, qdel and qalter run as the owner of the runner.

import type { Backend, RunnerOrder, RunnerSighting, Wish } from "../contract/backend.ts";
import { BackendError } from "../contract/fault.ts";
import type { BackendSettings } from "../contract/settings.ts";
import { batchesOf, byJobNumber, newRunners, runnersOf, withoutSurplus } from "../contract/sightings.ts";
import { failureOf, type Programs, programs, type RunOptions } from "../shell/programs.ts";
import type { TokenFiles } from "../shell/token-files.ts";
import { byOwner } from "../shell/users.ts";
import { variablesOf } from "../shell/variables-file.ts";
import { errorReason, memoryNames, qdelFailures, readQstat, submittedJob, tasksMax } from "./answer.ts";
import { gridEngineKind } from "./faults.ts";
import { type GridEngineOptions, gridEngineOptions } from "./options.ts";
import { type MemoryNames, qalterArgs, qstatArgs, qsubArgs, qsubScript, taskIds } from "./request.ts";

/** Largest number of tasks in one command line. */
const IDS_MAX = 500;
/** Largest number of jobs in error state for which one list() asks the reason. */
const REASONS_MAX = 3;

export function openGridEngine(settings: BackendSettings, tokens: TokenFiles): Backend {
  const engine = new GridEngine(settings, tokens);
  return {
    type: "gridengine",
    submit: (order) => engine.submit(order),
    list: () => engine.list(),
    cancel: (runners, { queued_only = false } = {}) => engine.cancel(runners, queued_only),
    probe: () => engine.probe(),
    release: async (tag) => tokens.remove(tag),
    kept: () => tokens.tags(),
    reschedule: (runners, wish) => engine.reschedule(runners, wish),
    close: async () => undefined,
  };
}

class GridEngine {
  readonly #settings: BackendSettings;
  readonly #options: GridEngineOptions;
  readonly #tokens: TokenFiles;
  readonly #programs: Programs;
  #memory: MemoryNames | null = null;

  constructor(settings: BackendSettings, tokens: TokenFiles) {
    this.#settings = settings;
    this.#options = gridEngineOptions(settings);
    this.#tokens = tokens;
    const { bin, env, config, timeout_ms } = this.#options;
    this.#programs = programs({ bin, env: { ...variablesOf(config, ["SGE"]), ...env }, timeout_ms });
  }

  async submit(order: RunnerOrder): Promise<readonly RunnerSighting[]> {
    if (!order.isFirst) {
      const there = runnersOf(order, await this.list());
      if (there.length > 0) return there;
    }
    this.#memory ??= memoryNames(await this.#run("qconf", ["-sc"]));
    const args = qsubArgs(order, this.#options, this.#memory);
    this.#tokens.write(order);
    const input = qsubScript(order, this.#tokens.directoryOf(order.tag));
    const stdout = await this.#run("qsub", args, { owner: order.owner, input }, true);
    const job = submittedJob(stdout);
    if (job === null)
      throw new BackendError({ kind: "transient", text: `qsub printed no job number: ${stdout.slice(0, 200)}` }, { uncertain: true });
    return newRunners(order, this.#settings.user, (index) => `${job}.${index + 1}`);
  }

  async list(): Promise<readonly RunnerSighting[]> {
    const { user, complex, name: backend } = this.#settings;
    const all = readQstat(await this.#run("qstat", qstatArgs(user)), { complex, backend, prefix: this.#options.name_prefix });
    const { kept, surplus } = withoutSurplus(all, byJobNumber);
    if (surplus.length > 0) await this.cancel(surplus, false);
    return this.#withReasons(kept);
  }

  /** Adds Grid Engine's own reason to jobs in error state. */
  async #withReasons(runners: readonly RunnerSighting[]): Promise<readonly RunnerSighting[]> {
    const jobs = [...new Set(runners.filter(({ fault }) => fault !== null).map(({ id }) => id.split(".")[0] ?? id))].slice(0, REASONS_MAX);
    const reasons = new Map<string, string>();
    for (const job of jobs) {
      const { stdout } = await this.#programs.run("qstat", ["-j", job]);
      const reason = errorReason(stdout);
      if (reason !== null) reasons.set(job, reason);
    }
    return runners.map((each) => {
      const reason = reasons.get(each.id.split(".")[0] ?? "");
      return each.fault === null || reason === undefined ? each : { ...each, reason, fault: { ...each.fault, text: reason } };
    });
  }

  async cancel(runners: readonly RunnerSighting[], queued_only: boolean): Promise<void> {
    const now = queued_only ? new Set((await this.list()).filter(({ state }) => state === "queued").map(({ id }) => id)) : null;
    const chosen = now === null ? runners : runners.filter(({ id }) => now.has(id));
    for (const [owner, own] of byOwner(chosen, this.#settings.user))
      for (const batch of batchesOf(own, IDS_MAX)) {
        const ran = await this.#programs.run("qdel", taskIds(batch), { owner });
        if (ran.status === 0 || (!ran.timed_out && qdelFailures(ran.stdout, ran.stderr) === "")) continue;
        throw failureOf("qdel", ran, { timeout_ms: this.#options.timeout_ms, kindOf: gridEngineKind });
      }
  }

  async reschedule(runners: readonly RunnerSighting[], wish: Wish): Promise<void> {
    for (const [owner, own] of byOwner(runners, this.#settings.user)) await this.#run("qalter", qalterArgs(own, wish), { owner });
  }

  async probe(): ReturnType<Backend["probe"]> {
    const version = (await this.#run("qstat", ["-help"])).split("\n")[0]?.trim() ?? "";
    const array_max = tasksMax(await this.#run("qconf", ["-sconf"]));
    this.#memory = memoryNames(await this.#run("qconf", ["-sc"]));
    return { text: version, array_max };
  }

  /** Runs a program and returns what it printed. isSubmission: a failure that is not a clear refusal is uncertain. */
  async #run(name: string, args: readonly string[], options: RunOptions = {}, isSubmission = false): Promise<string> {
    const ran = await this.#programs.run(name, args, options);
    if (ran.status === 0) return ran.stdout;
    throw failureOf(name, ran, { timeout_ms: this.#options.timeout_ms, kindOf: gridEngineKind, isSubmission });
  }
}
