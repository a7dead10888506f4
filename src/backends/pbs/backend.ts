// Runners as jobs of another PBS complex (Partita's or OpenPBS's), through its commands.
//
// I1. As with Slurm, before an order is submitted again, jobs with its tag are looked for, also among those that ended lately if that complex keeps a history. A
//     second submission with the same tag is deleted.
// I2. qsub, qdel and qalter run as the owner of the runner.

import type { Backend, RunnerOrder, RunnerSighting, Wish } from "../contract/backend.ts";
import { BackendError } from "../contract/fault.ts";
import type { BackendSettings } from "../contract/settings.ts";
import { batchesOf, byJobNumber, newRunners, runnersOf, withoutSurplus } from "../contract/sightings.ts";
import { failureOf, type Programs, programs, type RunOptions } from "../shell/programs.ts";
import type { TokenFiles } from "../shell/token-files.ts";
import { byOwner } from "../shell/users.ts";
import { qdelFailures, readQstat, runnerId, submittedId } from "./answer.ts";
import { pbsKind } from "./faults.ts";
import { type PbsOptions, pbsEnv, pbsOptions } from "./options.ts";
import { qalterArgs, qstatArgs, qsubArgs, qsubScript } from "./request.ts";

/** Largest number of jobs in one command line. */
const IDS_MAX = 500;
/** Largest number of subjobs in one array: what servers allow if max_array_size is not set. */
const ARRAY_MAX = 10_000;

export function openPbs(settings: BackendSettings, tokens: TokenFiles): Backend {
  const pbs = new Pbs(settings, tokens);
  return {
    type: "pbs",
    submit: (order) => pbs.submit(order),
    list: () => pbs.list(),
    cancel: (runners, { queued_only = false } = {}) => pbs.cancel(runners, queued_only),
    probe: () => pbs.probe(),
    release: async (tag) => tokens.remove(tag),
    kept: () => tokens.tags(),
    reschedule: (runners, wish) => pbs.reschedule(runners, wish),
    close: async () => undefined,
  };
}

class Pbs {
  readonly #settings: BackendSettings;
  readonly #options: PbsOptions;
  readonly #tokens: TokenFiles;
  readonly #programs: Programs;

  constructor(settings: BackendSettings, tokens: TokenFiles) {
    this.#settings = settings;
    this.#options = pbsOptions(settings);
    this.#tokens = tokens;
    this.#programs = programs({ bin: this.#options.bin, env: pbsEnv(this.#options), timeout_ms: this.#options.timeout_ms });
  }

  async submit(order: RunnerOrder): Promise<readonly RunnerSighting[]> {
    if (!order.isFirst) {
      const there = runnersOf(order, await this.#listed(true));
      if (there.length > 0) return there;
    }
    const args = qsubArgs(order, this.#options);
    this.#tokens.write(order);
    const input = qsubScript(order, this.#tokens.directoryOf(order.tag));
    const stdout = await this.#run("qsub", args, { owner: order.owner, input }, true);
    const job = submittedId(stdout);
    if (job === null)
      throw new BackendError({ kind: "transient", text: `qsub printed no job id: ${stdout.slice(0, 200)}` }, { uncertain: true });
    return newRunners(order, this.#settings.user, (index) => runnerId(job, index));
  }

  list(): Promise<readonly RunnerSighting[]> {
    return this.#listed(false);
  }

  /** history: also asks for jobs that ended lately; a complex that keeps no history must be asked without them. */
  async #listed(history: boolean): Promise<readonly RunnerSighting[]> {
    const { user, complex, name: backend } = this.#settings;
    const stdout = await this.#run("qstat", qstatArgs(history)).catch((error: unknown) => {
      if (history && error instanceof BackendError && /history/i.test(error.message)) return this.#run("qstat", qstatArgs(false));
      throw error;
    });
    const all = readQstat(stdout, { complex, backend, prefix: this.#options.name_prefix });
    const own = user === null ? all : all.filter((each) => each.user === user);
    const { kept, surplus } = withoutSurplus(own, byJobNumber);
    if (surplus.length > 0) await this.cancel(surplus, false);
    return kept;
  }

  async cancel(runners: readonly RunnerSighting[], queued_only: boolean): Promise<void> {
    const now = queued_only ? new Set((await this.list()).filter(({ state }) => state === "queued").map(({ id }) => id)) : null;
    const chosen = now === null ? runners : runners.filter(({ id }) => now.has(id));
    for (const [owner, own] of byOwner(chosen, this.#settings.user))
      for (const batch of batchesOf(own, IDS_MAX)) {
        const ran = await this.#programs.run("qdel", ["-W", "suppress_email=-1", ...batch.map(({ id }) => id)], { owner });
        if (ran.status === 0 || (!ran.timed_out && qdelFailures(ran.stderr) === "")) continue;
        throw failureOf("qdel", ran, { timeout_ms: this.#options.timeout_ms, kindOf: pbsKind });
      }
  }

  async reschedule(runners: readonly RunnerSighting[], wish: Wish): Promise<void> {
    for (const [owner, own] of byOwner(runners, this.#settings.user)) await this.#run("qalter", qalterArgs(own, wish), { owner });
  }

  async probe(): ReturnType<Backend["probe"]> {
    const server = await this.#run("qstat", ["-B", "-f"]);
    const version = /pbs_version = (\S+)/.exec(server)?.[1] ?? "unknown version";
    const max = Number(/max_array_size = (\d+)/.exec(server)?.[1] ?? ARRAY_MAX);
    return { text: `pbs ${version}`, array_max: max };
  }

  /** Runs a program and returns what it printed. isSubmission: a failure that is not a clear refusal is uncertain. */
  async #run(name: string, args: readonly string[], options: RunOptions = {}, isSubmission = false): Promise<string> {
    const ran = await this.#programs.run(name, args, options);
    if (ran.status === 0) return ran.stdout;
    throw failureOf(name, ran, { timeout_ms: this.#options.timeout_ms, kindOf: pbsKind, isSubmission });
  }
}
