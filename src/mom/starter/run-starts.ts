// Starts runs, which are top processes and tasks. The run of an interactive job starts when its terminal exists
// (terminals.ts). The result of a start is in the journal before it is reported to the mom.

import { JOB_EXEC } from "#model/exit-status.ts";
import { messageOf } from "#support/caught.ts";
import type { JobGroups } from "../host/cgroup.ts";
import { readProcess } from "../host/proc-table.ts";
import { jobOfName, type RunKey, type StartedRun, type StarterToMom, type StartSpec } from "../job/starter-link.ts";

import type { Children } from "./children.ts";
import { type Journal, type JournalRecord, noteInJournal } from "./journal.ts";
import { type Launched, type LaunchFailure, launch } from "./launch.ts";
import { type OpenTerminal, type Terminals, terminalEnvironment } from "./terminals.ts";

type Failed = StarterToMom["starter-failed"]["runs"][number];
/** What the mom is told about some starts. */
export type StartsOutcome = { readonly started: readonly StartedRun[]; readonly failed: readonly Failed[] };
type Outcome = { readonly started: StartedRun[]; readonly failed: Failed[] };

export type RunStartsOptions = {
  readonly journal: Journal;
  readonly children: Children;
  readonly terminals: Terminals;
  readonly groups: JobGroups | null;
  readonly now_ms: () => number;
  readonly tell: (outcome: StartsOutcome) => void;
  readonly complain: (text: string) => void;
};

const OWN_UID = process.geteuid?.() ?? 0;

export class RunStarts {
  readonly #options: RunStartsOptions;
  /** records that are written to the journal before the mom is informed */
  readonly #notes: JournalRecord[] = [];

  constructor(options: RunStartsOptions) {
    this.#options = options;
  }

  start(specs: readonly StartSpec[]): void {
    const outcome: Outcome = { started: [], failed: [] };
    try {
      for (const spec of specs) this.#startOne(spec, outcome);
    } finally {
      this.#tell(outcome);
    }
  }

  #startOne(spec: StartSpec, outcome: Outcome): void {
    const { children, terminals, groups } = this.#options;
    const known = children.runs.get(spec.job);
    if ((known !== undefined && known.run_count >= spec.run_count) || terminals.has(spec)) return;
    const text = this.#lateness(spec) ?? this.#announce(spec);
    if (text !== null) {
      outcome.failed.push({ ...keyOf(spec), exit_status: JOB_EXEC.RETRY, text, at_ms: this.#options.now_ms() });
      return;
    }
    if (spec.terminal === null) return this.#launch(spec, null, outcome);
    // The terminal relay does not belong to a job. This thread may still be in the control group of the job that was started last, and must leave it first.
    groups?.leave();
    this.#openAndLaunch({ ...spec, terminal: spec.terminal });
  }

  /** Returns why the run must not be started any more; null: it may be. */
  #lateness({ until_ms }: StartSpec): string | null {
    return until_ms !== undefined && this.#options.now_ms() >= until_ms ? "its host is cut off from the server for too long" : null;
  }

  /**
   * Writes a record before the launch. If the starter dies after the launch, this record shows that the run is lost; without it, the run would be started twice
   * (run/recovery.ts V1). Returns null if the record is written; otherwise the reason why not.
   */
  #announce(spec: StartSpec): string | null {
    const { journal, now_ms, complain } = this.#options;
    try {
      journal.append([{ t: "start", ...keyOf(spec), pid: 0, at_ms: now_ms(), ticks: 0, cookie: cookieOf(spec.env) }]);
      return null;
    } catch (error) {
      const text = `journal: ${messageOf(error)}`;
      complain(text);
      return text;
    }
  }

  #launch(spec: StartSpec, terminal: OpenTerminal | null, outcome: Outcome): void {
    const { children, now_ms } = this.#options;
    const key = keyOf(spec);
    const job = jobOfName(spec.job);
    // The job's top process has been reaped, so the whole job is being ended (job/starter-link.ts, S3).
    if (job !== spec.job && children.alive({ job, run_count: spec.run_count }) === null) {
      outcome.failed.push({ ...key, exit_status: JOB_EXEC.RETRY, text: `job ${job} is over`, at_ms: now_ms() });
      return;
    }
    const launched = this.#launchInGroup(job, spec, terminal);
    const at_ms = now_ms();
    if (!("pid" in launched)) {
      this.#giveUp(spec);
      outcome.failed.push({ ...key, ...launched, at_ms });
      return;
    }
    const { pid, script } = launched;
    const ticks = readProcess(pid)?.start_ticks ?? 0;
    const run = { ...key, pid, at_ms, ...(terminal === null ? {} : { terminal: terminal.pty }) };
    const cookie = cookieOf(spec.env);
    const as_script = script === undefined ? {} : { script: kernelName(script) };
    children.byPid.set(pid, { ...key, cookie, uid: spec.owner?.uid ?? OWN_UID, ...as_script });
    children.runs.set(spec.job, { ...run, ticks, state: "running", cookie });
    outcome.started.push(run);
    this.#notes.push({ t: "start", ...key, pid, at_ms, ticks, cookie });
  }

  #launchInGroup(job: string, spec: StartSpec, terminal: OpenTerminal | null): Launched | LaunchFailure {
    const { groups } = this.#options;
    const start = (): Launched | LaunchFailure => launch(spec, terminal?.pty);
    if (groups === null || spec.cgroup === null) {
      groups?.leave();
      return start();
    }
    const launched = groups.within(job, spec.cgroup, start);
    if ("pid" in launched) groups.bringIn(launched.pid);
    return launched;
  }

  #giveUp(spec: StartSpec): void {
    const { groups, terminals } = this.#options;
    if (jobOfName(spec.job) === spec.job) groups?.close(spec.job);
    terminals.over(spec.job);
    this.#notes.push({ t: "failed", ...keyOf(spec) });
  }

  #openAndLaunch(spec: StartSpec & { readonly terminal: NonNullable<StartSpec["terminal"]> }): void {
    this.#options.terminals.open(spec, {
      opened: (terminal) => {
        const outcome: Outcome = { started: [], failed: [] };
        this.#launch({ ...spec, env: terminalEnvironment(spec.env, terminal) }, terminal, outcome);
        this.#tell(outcome);
      },
      failed: (why) => {
        const key = keyOf(spec);
        const text = `cannot open interactive qsub socket: ${why}`;
        this.#notes.push({ t: "failed", ...key });
        this.#tell({ started: [], failed: [{ ...key, exit_status: JOB_EXEC.FAIL1, text, at_ms: this.#options.now_ms() }] });
      },
    });
  }

  #tell(outcome: StartsOutcome): void {
    const { groups, journal, tell, complain } = this.#options;
    groups?.leave();
    noteInJournal(journal, this.#notes.splice(0), complain);
    tell(outcome);
  }
}

const keyOf = ({ job, run_count }: RunKey): RunKey => ({ job, run_count });

/** Returns the name that the kernel gives to a process that executes this file. */
const kernelName = (path: string): string => Buffer.from(path.slice(path.lastIndexOf("/") + 1)).toString("latin1", 0, KERNEL_NAME_BYTES);
const KERNEL_NAME_BYTES = 15;

const cookieOf = (env: readonly string[]): string =>
  env.find((entry) => entry.startsWith("PBS_JOBCOOKIE="))?.slice("PBS_JOBCOOKIE=".length) ?? "";
