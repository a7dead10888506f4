// Runners as tasks of array jobs of Grid Engine, through its commands.
//
// I1. As for Slurm: a tag is looked for before it is submitted again, also among jobs that ended lately; a second submission with one tag is deleted.
// I2. qsub, qdel and qalter run as the owner of the runner.

import { readFileSync } from "node:fs";
import { messageOf } from "#support/caught.ts";
import type { Backend, RunnerOrder, RunnerSighting, Wish } from "../contract/backend.ts";
import { BackendError } from "../contract/fault.ts";
import type { BackendSettings } from "../contract/settings.ts";
import { batchesOf, withoutSurplus } from "../contract/sightings.ts";
import { type Programs, programs, type RunOptions, wordsOf } from "../shell/programs.ts";
import type { TokenFiles } from "../shell/token-files.ts";
import { byOwner } from "../shell/users.ts";
import { errorReason, memoryNames, qdelFailures, readQstat, submittedJob, tasksMax } from "./answer.ts";
import { gridEngineKind } from "./faults.ts";
import { type GridEngineOptions, gridEngineOptions, readVariables } from "./options.ts";
import { type MemoryNames, qalterArgs, qstatArgs, qsubArgs, qsubScript, taskIds } from "./request.ts";

/** Tasks in one command line. */
const IDS_MAX = 500;
/** Jobs in error state of which one list() asks the reason. */
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
    this.#programs = programs({ bin, env: { ...variablesOf(config), ...env }, timeout_ms });
  }

  async submit(order: RunnerOrder): Promise<readonly RunnerSighting[]> {
    if (!order.isFirst) {
      const all = await this.list();
      const there = all.filter(({ tag, user }) => tag === order.tag && (order.owner === null || user === order.owner.name));
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
    const user = order.owner?.name ?? this.#settings.user;
    const submitted = { tag: order.tag, state: "queued", reason: "submitted", user, host: null, ending: null, fault: null } as const;
    return Array.from({ length: order.count }, (_, index) => ({ ...submitted, index, id: `${job}.${index + 1}` }));
  }

  async list(): Promise<readonly RunnerSighting[]> {
    const { user, complex, name: backend } = this.#settings;
    const all = readQstat(await this.#run("qstat", qstatArgs(user)), { complex, backend, prefix: this.#options.name_prefix });
    const { kept, surplus } = withoutSurplus(all, (a, b) => Number.parseInt(a.id, 10) - Number.parseInt(b.id, 10));
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
        const text =
          ran.status === 0 ? "" : ran.timed_out ? wordsOf("qdel", ran, this.#options.timeout_ms) : qdelFailures(ran.stdout, ran.stderr);
        if (text !== "") throw new BackendError({ kind: gridEngineKind(text), text });
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
    const text = wordsOf(name, ran, this.#options.timeout_ms);
    const kind = gridEngineKind(text);
    throw new BackendError({ kind, text }, { uncertain: isSubmission && (ran.timed_out || kind === "transient") });
  }
}

function variablesOf(config: string | null): Readonly<Record<string, string>> {
  if (config === null) return {};
  try {
    return readVariables(readFileSync(config, "utf8"));
  } catch (error) {
    throw new BackendError({ kind: "configuration", text: `config: ${messageOf(error)}` }, { cause: error });
  }
}
