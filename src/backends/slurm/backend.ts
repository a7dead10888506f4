// Runners as jobs of Slurm, through its commands.
//
// I1. If a submission may have happened already, jobs with its tag are looked for before anything is submitted (B1). If Slurm accepts the first submission only
//     after this look, list() finds two submissions with one tag, and cancels the later one.
// I2. sbatch, scancel and scontrol update run as the owner of the runner; squeue and scontrol show run as the controller.

import { randomBytes } from "node:crypto";
import type { Backend, RunnerOrder, RunnerSighting, Wish } from "../contract/backend.ts";
import { BackendError } from "../contract/fault.ts";
import type { BackendSettings } from "../contract/settings.ts";
import { batchesOf, byJobNumber, newRunners, runnersOf, withoutSurplus } from "../contract/sightings.ts";
import { failureOf, type Programs, programs, type RunOptions } from "../shell/programs.ts";
import type { TokenFiles } from "../shell/token-files.ts";
import { byOwner } from "../shell/users.ts";
import { readConfig, readLicenses, readSqueue, submittedId } from "./answer.ts";
import { slurmKind } from "./faults.ts";
import { niceScale, type SlurmOptions, slurmOptions } from "./options.ts";
import { niceArgs, type SlurmFacts, sbatchArgs, sbatchScript, scancelArgs, squeueArgs } from "./request.ts";

/** Slurm's configuration is read again after this time. */
const FACTS_MS = 60_000;
/** Largest number of jobs in one command line. */
const IDS_MAX = 1000;

export function openSlurm(settings: BackendSettings, tokens: TokenFiles): Backend {
  const slurm = new Slurm(settings, tokens);
  return {
    type: "slurm",
    submit: (order) => slurm.submit(order),
    list: () => slurm.list(),
    cancel: (runners, { queued_only = false } = {}) => slurm.cancel(runners, queued_only),
    probe: () => slurm.probe(),
    release: async (tag) => tokens.remove(tag),
    kept: () => tokens.tags(),
    reschedule: (runners, wish) => slurm.reschedule(runners, wish),
    close: async () => undefined,
  };
}

/** What Slurm's configuration says, and until when it is believed (monotonic clock). */
type Asked = { readonly facts: SlurmFacts; readonly text: string; readonly array_max: number; readonly until_ms: number };

class Slurm {
  readonly #settings: BackendSettings;
  readonly #options: SlurmOptions;
  readonly #tokens: TokenFiles;
  readonly #programs: Programs;
  #facts: Asked | null = null;

  constructor(settings: BackendSettings, tokens: TokenFiles) {
    this.#settings = settings;
    this.#options = slurmOptions(settings);
    this.#tokens = tokens;
    const { bin, config, timeout_ms } = this.#options;
    this.#programs = programs({ bin, env: config === null ? {} : { SLURM_CONF: config }, timeout_ms });
  }

  async submit(order: RunnerOrder): Promise<readonly RunnerSighting[]> {
    if (!order.isFirst) {
      const there = runnersOf(order, await this.list());
      if (there.length > 0) return there;
    }
    const { facts } = await this.#askFacts();
    const args = sbatchArgs(order, this.#options, facts);
    this.#tokens.write(order);
    const input = sbatchScript(order, this.#tokens.directoryOf(order.tag));
    const stdout = await this.#run("sbatch", args, { owner: order.owner, input }, true);
    const id = submittedId(stdout);
    if (id === null)
      throw new BackendError({ kind: "transient", text: `sbatch printed no job id: ${stdout.slice(0, 200)}` }, { uncertain: true });
    return newRunners(order, this.#settings.user, (index) => `${id}_${index}`);
  }

  async list(): Promise<readonly RunnerSighting[]> {
    const separator = `|${randomBytes(9).toString("base64url")}|`;
    const { user, complex, name: backend } = this.#settings;
    const stdout = await this.#run("squeue", squeueArgs(separator, user, this.#options.cluster));
    const all = readSqueue(stdout, separator, { complex, backend, prefix: this.#options.name_prefix });
    const { kept, surplus } = withoutSurplus(all, byJobNumber);
    if (surplus.length > 0) await this.cancel(surplus, false);
    return kept;
  }

  async cancel(runners: readonly RunnerSighting[], queued_only: boolean): Promise<void> {
    for (const [owner, own] of byOwner(runners, this.#settings.user))
      for (const batch of batchesOf(own, IDS_MAX)) {
        const ids = batch.map(({ id }) => id);
        await this.#run("scancel", scancelArgs(ids, queued_only, this.#options.cluster), { owner });
      }
  }

  async reschedule(runners: readonly RunnerSighting[], wish: Wish): Promise<void> {
    const { facts } = await this.#askFacts();
    for (const [owner, own] of byOwner(runners, this.#settings.user))
      for (const { id } of own) {
        const args = niceArgs(id, wish, this.#options, facts);
        if (args !== null) await this.#run("scontrol", args, { owner });
      }
  }

  async probe(): ReturnType<Backend["probe"]> {
    this.#facts = null;
    const { text, array_max } = await this.#askFacts();
    return { text, array_max };
  }

  async #askFacts(): Promise<Asked> {
    if (this.#facts !== null && performance.now() < this.#facts.until_ms) return this.#facts;
    const cluster = this.#options.cluster === null ? [] : [`--cluster=${this.#options.cluster}`];
    const { version, array_max, priority_parameters } = readConfig(await this.#run("scontrol", [...cluster, "show", "config"]));
    const licenses = readLicenses(await this.#run("scontrol", [...cluster, "show", "licenses"]));
    const facts = { licenses, scale: niceScale(this.#options, priority_parameters) };
    this.#facts = { facts, text: `slurm ${version}`, array_max, until_ms: performance.now() + FACTS_MS };
    return this.#facts;
  }

  /** Runs a program and returns what it printed. isSubmission: a failure that is not a clear refusal is uncertain. */
  async #run(name: string, args: readonly string[], options: RunOptions = {}, isSubmission = false): Promise<string> {
    const ran = await this.#programs.run(name, args, options);
    if (ran.status === 0) return ran.stdout;
    throw failureOf(name, ran, { timeout_ms: this.#options.timeout_ms, kindOf: slurmKind, isSubmission });
  }
}
