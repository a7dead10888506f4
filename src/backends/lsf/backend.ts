// Runners as elements of job arrays of LSF, through its commands. LSF is not free, so this adapter was written from its reference and is tested against a
// stand-in (test/backends/lsf/stand-in.mjs), never against a real LSF.
//
// I1. As with Slurm, before an order is submitted again, jobs with its tag are looked for, also among those that ended lately (CLEAN_PERIOD). A second submission
//     with the same tag is killed.
// I2. bsub and bkill run as the owner of the runner.

import type { Backend, RunnerOrder, RunnerSighting } from "../contract/backend.ts";
import { BackendError } from "../contract/fault.ts";
import type { BackendSettings } from "../contract/settings.ts";
import { batchesOf, byJobNumber, newRunners, runnersOf, withoutSurplus } from "../contract/sightings.ts";
import { failureOf, type Programs, programs, type Ran, type RunOptions } from "../shell/programs.ts";
import type { TokenFiles } from "../shell/token-files.ts";
import { byOwner } from "../shell/users.ts";
import { variablesOf } from "../shell/variables-file.ts";
import { bkillFailures, readBjobs, readBqueues, submittedJob } from "./answer.ts";
import { lsfKind } from "./faults.ts";
import { type LsfOptions, lsfOptions } from "./options.ts";
import { bjobsArgs, bkillArgs, bsubArgs, bsubScript } from "./request.ts";

/** Largest number of elements in one command line. */
const IDS_MAX = 500;
/** Largest number of elements in one array: the default of MAX_JOB_ARRAY_SIZE. */
const ARRAY_MAX = 1000;

export function openLsf(settings: BackendSettings, tokens: TokenFiles): Backend {
  const lsf = new Lsf(settings, tokens);
  return {
    type: "lsf",
    submit: (order) => lsf.submit(order),
    list: () => lsf.list(),
    cancel: (runners, { queued_only = false } = {}) => lsf.cancel(runners, queued_only),
    probe: () => lsf.probe(),
    release: async (tag) => tokens.remove(tag),
    kept: () => tokens.tags(),
    close: async () => undefined,
  };
}

class Lsf {
  readonly #settings: BackendSettings;
  readonly #options: LsfOptions;
  readonly #tokens: TokenFiles;
  readonly #programs: Programs;

  constructor(settings: BackendSettings, tokens: TokenFiles) {
    this.#settings = settings;
    this.#options = lsfOptions(settings);
    this.#tokens = tokens;
    const { bin, config, envdir, timeout_ms } = this.#options;
    this.#programs = programs({
      bin,
      env: { ...variablesOf(config, ["LSF", "LSB", "EGO"]), ...(envdir === null ? {} : { LSF_ENVDIR: envdir }) },
      timeout_ms,
    });
  }

  async submit(order: RunnerOrder): Promise<readonly RunnerSighting[]> {
    if (!order.isFirst) {
      const there = runnersOf(order, await this.list());
      if (there.length > 0) return there;
    }
    const args = bsubArgs(order, this.#options);
    this.#tokens.write(order);
    const input = bsubScript(order, this.#tokens.directoryOf(order.tag));
    const stdout = await this.#run("bsub", args, { owner: order.owner, input }, true);
    const job = submittedJob(stdout);
    if (job === null)
      throw new BackendError({ kind: "transient", text: `bsub printed no job id: ${stdout.slice(0, 200)}` }, { uncertain: true });
    return newRunners(order, this.#settings.user, (index) => `${job}[${index + 1}]`);
  }

  async list(): Promise<readonly RunnerSighting[]> {
    const { user, complex, name: backend } = this.#settings;
    const ran = await this.#programs.run("bjobs", bjobsArgs(user));
    if (ran.status !== 0 && !(isEmpty(ran) && !ran.timed_out)) throw this.#failed("bjobs", ran);
    const all = readBjobs(isEmpty(ran) && ran.status !== 0 ? "" : ran.stdout, { complex, backend, prefix: this.#options.name_prefix });
    const { kept, surplus } = withoutSurplus(all, byJobNumber);
    if (surplus.length > 0) await this.cancel(surplus, false);
    return kept;
  }

  async cancel(runners: readonly RunnerSighting[], queued_only: boolean): Promise<void> {
    const now = queued_only ? new Set((await this.list()).filter(({ state }) => state === "queued").map(({ id }) => id)) : null;
    const chosen = now === null ? runners : runners.filter(({ id }) => now.has(id));
    for (const [owner, own] of byOwner(chosen, this.#settings.user))
      for (const batch of batchesOf(own, IDS_MAX)) {
        const ran = await this.#programs.run("bkill", bkillArgs(batch), { owner });
        if (ran.status === 0 || (!ran.timed_out && bkillFailures(ran.stdout, ran.stderr) === "")) continue;
        throw this.#failed("bkill", ran);
      }
  }

  async probe(): ReturnType<Backend["probe"]> {
    const queues = readBqueues(await this.#run("bqueues", []));
    const { queue } = this.#options;
    const own = queues.find(({ name }) => name === queue);
    if (queue !== null && own === undefined)
      throw new BackendError({
        kind: "configuration",
        text: `there is no queue ${queue}; there are: ${queues.map(({ name }) => name).join(" ")}`,
      });
    if (own !== undefined && !/^Open:Active$/i.test(own.status))
      throw new BackendError({ kind: "configuration", text: `queue ${own.name} is ${own.status}` });
    return { text: `lsf: queues ${queues.map(({ name, status }) => `${name} ${status}`).join(", ")}`, array_max: ARRAY_MAX };
  }

  async #run(name: string, args: readonly string[], options: RunOptions = {}, isSubmission = false): Promise<string> {
    const ran = await this.#programs.run(name, args, options);
    if (ran.status === 0) return ran.stdout;
    throw this.#failed(name, ran, isSubmission);
  }

  #failed(name: string, ran: Ran, isSubmission = false): BackendError {
    return failureOf(name, ran, { timeout_ms: this.#options.timeout_ms, kindOf: lsfKind, isSubmission });
  }
}

const isEmpty = ({ stdout, stderr }: Ran): boolean => /^No (?:unfinished )?job found/im.test(stderr) && stdout.trim() === "";
