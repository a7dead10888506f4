// Tasks of a job besides its top process (docs/reference/execution.md 3). pbsdsh, pbs_tmrsh and pbs_attach ask the mom of their host, which starts them here
// or asks the mom of another host of the job. Pure, like life.ts.
//
// T1. A task is started only for a run that is running here and is not being ended. It is requested by the owner of the run,
//     with the run's secret, or by another mom of the run (task-link.ts K1, K2, K3).
// T2. A task has the job's identity, environment, limits and group; processes that it leaves end with the job.
// T3. A request is answered by task-refused, or by task-started and later task-exited. A mom that repeats a request gets these answers again (named-tasks.ts).
// T4. A piece of output that comes twice is added once.

import type { HostIdentity } from "#identity/peer.ts";
import { hostsOf } from "#model/request/host-entry.ts";
import { nth } from "#support/assert.ts";
import { isSameHost } from "../job/attrs.ts";
import { nodefileText } from "../job/environment.ts";
import { hostsOfPeer, placeOf } from "../job/sister.ts";
import { type ExitedRun, type RunKey, type StartedRun, type StarterRun, type StarterToMom, taskName, taskOf } from "../job/starter-link.ts";
import type { Seen } from "../job/usage.ts";
import { endNamed, namedBefore, nameFor, nameTask } from "./named-tasks.ts";
import { type Context, FIRST_TASK, tasksSoFar } from "./record.ts";
import { fullSpec, isSisters } from "./start.ts";
import type { NamedTask, Run, SavedTasks, Task } from "./state.ts";
import { taskChars, textFault, type Waiting } from "./task-bounds.ts";
import type { TaskAnswer, TaskAsker, TaskWanted } from "./task-question.ts";

const SIGNALLED = 256;

/** Returns the fields of a run that has no running task. saved: what an earlier mom has written to the record of the run; null: this mom has begun the run. */
export const noTasks = (
  saved: Partial<SavedTasks> | null,
): Pick<Run, "tasks" | "starting_chars" | "named_tasks" | "names_lost" | "taken_output" | "next_task" | "tasks_cput_s" | "adopted"> => ({
  tasks: new Map<number, Task>(),
  starting_chars: 0,
  named_tasks: new Map(),
  names_lost: saved !== null,
  taken_output: new Map(),
  next_task: saved?.next_task ?? FIRST_TASK,
  tasks_cput_s: saved?.cput_s ?? 0,
  adopted: new Map(),
});

const saveTasks = (cx: Context, run: Run): void => void cx.actions.push({ kind: "save-tasks", run: keyOfRun(run), tasks: tasksSoFar(run) });

function say(cx: Context, asked: number | null, answer: TaskAnswer, drained?: RunKey): void {
  if (asked !== null) cx.actions.push({ kind: "task-say", asked, answer, ...(drained === undefined ? {} : { drained }) });
}

export function taskAsked(cx: Context, asked: number, by: TaskAsker, wanted: TaskWanted): void {
  const run = runFor(cx, by, wanted);
  if (typeof run === "string") return say(cx, asked, { type: "task-refused", text: run });
  switch (wanted.kind) {
    case "nodes": {
      const lines = nodefileText(run.job).split("\n").slice(0, -1);
      return say(cx, asked, { type: "task-hosts", lines, hosts: hostsOf(run.job.exec_host) });
    }
    case "spawn":
      return spawn(cx, asked, run, by, wanted);
    case "attach":
      return attach(cx, asked, run, wanted);
    case "output":
      return takeOutput(cx, asked, run, by, wanted);
    default: {
      const unreachable: never = wanted;
      return unreachable;
    }
  }
}

/** Finds the run of a request and checks T1. Returns a text with the reason if the request is refused. */
function runFor(cx: Context, by: TaskAsker, wanted: TaskWanted): Run | string {
  const { job, run_count, cookie } = wanted;
  const run = cx.state.runs.get(job);
  const unknown = `job ${job} does not run on ${cx.state.config.host}`;
  if (run === undefined) return unknown;
  if (by.host !== undefined) return mayAsk(cx, run, by.host, wanted) ? unlessEnding(run, unknown) : unknown;
  const own = by.daemon || by.uid === run.owner.identity?.uid;
  const asMom = by.daemon && run_count === run.job.run_count;
  const shown = cookie === null ? asMom || (own && wanted.kind === "attach") : own && cookie === run.job.cookie;
  return shown ? unlessEnding(run, unknown) : unknown;
}

function unlessEnding(run: Run, unknown: string): Run | string {
  if (run.phase.name !== "running") return unknown;
  return run.ending === null ? run : `job ${run.job.id} is being ended`;
}

/** Whether a mom of another host may make this request (task-link.ts K3). */
function mayAsk(cx: Context, { job }: Run, peer: HostIdentity, wanted: TaskWanted): boolean {
  const { host } = cx.state.config;
  if (job.sisters === undefined || wanted.cookie !== job.sisters.secret || wanted.run_count !== job.run_count) return false;
  const others = hostsOfPeer(job, peer).filter((name) => !isSameHost(name, host));
  if (wanted.kind === "output") return others.some((name) => isSameHost(name, wanted.from));
  return wanted.kind === "spawn" && isSameHost(wanted.host, host) && others.length > 0;
}

function attach(cx: Context, asked: number, run: Run, { pid, owner_uid }: TaskWanted & { readonly kind: "attach" }): void {
  if (owner_uid !== (run.owner.identity?.uid ?? cx.state.config.own.uid)) {
    const text = owner_uid === null ? `there is no process ${pid}` : `process ${pid} is not ${run.owner.user}'s`;
    return say(cx, asked, { type: "task-refused", text });
  }
  cx.actions.push({ kind: "adopt", run: keyOfRun(run), pid });
  say(cx, asked, { type: "task-done" });
}

const keyOfRun = ({ job }: Run): RunKey => ({ job: job.id, run_count: job.run_count });

type Spawn = TaskWanted & { readonly kind: "spawn" };

function spawn(cx: Context, asked: number, run: Run, by: TaskAsker, wanted: Spawn): void {
  const { host } = cx.state.config;
  const node = hostsOf(run.job.exec_host).findIndex((name) => isSameHost(name, wanted.host));
  const name = hostsOf(run.job.exec_host)[node];
  if (name === undefined)
    return say(cx, asked, { type: "task-refused", text: `host "${wanted.host}" is not a node in job <${run.job.id}>` });
  if (!isSameHost(name, host)) {
    const place = placeOf(run.job, name);
    const text = `the mom of ${name} cannot be reached`;
    if (place === null) return say(cx, asked, { type: "task-refused", text });
    const cookie = place.kind === "host" ? (run.job.sisters?.secret ?? null) : null;
    cx.actions.push({
      kind: "task-forward",
      asked,
      place,
      run: keyOfRun(run),
      wanted: { ...wanted, host: name, run_count: run.job.run_count, cookie },
      owner: uidOf(cx, run),
      most: cx.state.config.tasks_max,
      text_max: cx.state.config.task_text_max,
    });
    return;
  }
  const named = nameFor(by, wanted.name);
  const before = namedBefore(run, named);
  if (before !== null) return tellAgain(cx, asked, run, before);
  if (wanted.again === true && run.names_lost)
    return say(cx, asked, { type: "task-refused", text: `the mom of ${name} does not know the task (any more)` });
  if (run.tasks.size >= cx.state.config.tasks_max)
    return say(cx, asked, { type: "task-refused", text: tooManyTasks(run.job.id, name, cx.state.config.tasks_max) });
  const chars = taskChars(wanted);
  const fault = textFault(run.job.id, chars, startingChars(cx, run), cx.state.config.task_text_max);
  if (fault !== null) return say(cx, asked, { type: "task-refused", text: fault });
  if (named !== null) nameTask(run, named, run.next_task, cx.state.config.tasks_max);
  start(cx, run, node, { asked, pid: 0, chars, ...(named === null ? {} : { name: named }) }, wanted);
}

/** Length of the text of all tasks of the run and of its owner that are being started here. */
function startingChars(cx: Context, run: Run): Waiting {
  const owner = uidOf(cx, run);
  let user_chars = 0;
  for (const each of cx.state.runs.values()) if (each.starting_chars > 0 && uidOf(cx, each) === owner) user_chars += each.starting_chars;
  return { job_chars: run.starting_chars, user_chars };
}

const uidOf = (cx: Context, { owner }: Run): number => owner.identity?.uid ?? cx.state.config.own.uid;

/** Called when a task has been started, or will not be: its text is no longer held. */
function started(run: Run, { pid, chars = 0 }: Task): void {
  if (pid === 0) run.starting_chars -= chars;
}

/** Answers a repeated request: the answers about its task will come, or are already known and sent now. */
function tellAgain(cx: Context, asked: number, run: Run, { task: number, end }: NamedTask): void {
  const task = run.tasks.get(number);
  if (task !== undefined) task.asked = asked;
  if (task !== undefined ? task.pid > 0 : end?.type === "task-exited") say(cx, asked, { type: "task-started", task: number });
  if (end !== null) say(cx, asked, end, isSisters(cx, run) ? keyOfRun(run) : undefined);
  else if (task === undefined) say(cx, asked, { type: "task-refused", text: "the task was lost" });
}

export const tooManyTasks = (job: string, host: string, most: number): string =>
  `job ${job} has ${most} tasks on ${host} already ($tasks_max)`;

function start(cx: Context, run: Run, node: number, entry: Task, wanted: Spawn): void {
  if (run.phase.name !== "running") return;
  const task = run.next_task++;
  run.tasks.set(task, entry);
  run.starting_chars += entry.chars ?? 0;
  const spec = fullSpec(cx, run, run.phase.files, { node, task });
  const { shell } = run.owner;
  const argv = wanted.shell ? [shell === "" ? "/bin/sh" : shell, "-c", wanted.argv.join(" ")] : wanted.argv;
  cx.actions.push({
    kind: "start",
    spec: {
      ...spec,
      job: taskName(run.job.id, task),
      path: nth(argv, 0),
      argv,
      login: false,
      stdin: null,
      terminal: null,
      env: [...spec.env.filter((entry) => !wanted.env.some((other) => nameOf(other) === nameOf(entry))), ...wanted.env.filter(isSafe)],
    },
  });
}

const nameOf = (entry: string): string => entry.slice(0, entry.indexOf("="));
const isSafe = (entry: string): boolean => entry.indexOf("=") > 0 && !entry.includes("\0");

/** Takes output that was written on a sister: it belongs to the job's own output. Only moms may send it. */
function takeOutput(
  cx: Context,
  asked: number,
  run: Run,
  by: TaskAsker,
  { letter, from, offset, content }: TaskWanted & { readonly kind: "output" },
): void {
  if (!(by.daemon || by.host !== undefined) || run.phase.name !== "running" || isSisters(cx, run))
    return say(cx, asked, { type: "task-refused", text: "no place for output" });
  const path = letter === "o" ? run.phase.files.stdout : run.phase.files.stderr;
  const key = `${letter} ${from.toLowerCase()}`;
  const bytes = Buffer.from(content, "base64");
  // After its restart, a mother superior does not know which output it has, so it accepts every piece (T4).
  const known = Math.max(0, (run.taken_output.get(key) ?? offset) - offset);
  const fresh = known === 0 ? content : bytes.subarray(known).toString("base64");
  run.taken_output.set(key, offset + Math.max(known, bytes.length));
  if (known >= bytes.length) return say(cx, asked, { type: "task-done" });
  // The sister sends the next piece after the answer. A slow disk here thus slows the sisters down and fills no memory.
  cx.actions.push({ kind: "append", owner: run.plan.owner, path, text: fresh, base64: true, asked });
}

// ---- starts and ends of tasks

function withTask(cx: Context, key: RunKey, work: (run: Run, number: number, task: Task) => void): void {
  const name = taskOf(key.job);
  const run = name === null ? undefined : cx.state.runs.get(name.job);
  const task = name === null ? undefined : run?.tasks.get(name.task);
  if (name !== null && run !== undefined && task !== undefined && run.job.run_count === key.run_count) work(run, name.task, task);
}

const forget = (cx: Context, { job, run_count }: RunKey): void => void cx.actions.push({ kind: "forget-task", run: { job, run_count } });

export function taskStarted(cx: Context, key: StartedRun): void {
  withTask(cx, key, (run, number, task) => {
    if (task.pid > 0) return;
    started(run, task);
    task.pid = key.pid;
    say(cx, task.asked, { type: "task-started", task: number });
    if (run.phase.name !== "running" || run.phase.suspended_ms === null) return;
    cx.actions.push({ kind: "signal", run: { job: key.job, run_count: key.run_count }, signal: cx.state.config.suspend_signal });
  });
}

export function taskFailed(cx: Context, key: StarterToMom["starter-failed"]["runs"][number]): void {
  withTask(cx, key, (run, number, task) => {
    run.tasks.delete(number);
    started(run, task);
    const answer = { type: "task-refused", text: key.text } as const;
    endNamed(run, task, answer);
    // On a sister, the answer is sent only after the task's output has reached the mother superior: the output also says why the task could not start.
    say(cx, task.asked, answer, isSisters(cx, run) ? keyOfRun(run) : undefined);
  });
}

export function taskExited(cx: Context, exit: ExitedRun): void {
  forget(cx, exit);
  withTask(cx, exit, (run, number, task) => {
    run.tasks.delete(number);
    started(run, task);
    run.tasks_cput_s += exit.cput_s;
    run.sample = { ...run.sample, mem_kb: Math.max(run.sample.mem_kb, exit.peak_kb ?? 0) };
    saveTasks(cx, run);
    const status = "code" in exit.status ? exit.status.code : SIGNALLED + exit.status.signal;
    const answer = { type: "task-exited", status } as const;
    endNamed(run, task, answer);
    say(cx, task.asked, answer, isSisters(cx, run) ? keyOfRun(run) : undefined);
  });
}

/** Notes that the starter has taken a session into the job. */
export function adopted(cx: Context, { session, owner, ...key }: StarterToMom["starter-adopted"]["runs"][number]): void {
  const run = cx.state.runs.get(key.job);
  if (run?.job.run_count === key.run_count && run.phase.name === "running" && !run.adopted.has(session))
    run.adopted.set(session, { owner, cput_s: 0 });
}

/** Drops the tasks of a job. Called when its top process has ended: the tasks end with it. */
export function desertTasks(cx: Context, run: Run): void {
  for (const { cput_s } of run.adopted.values()) run.tasks_cput_s += cput_s;
  run.adopted.clear();
  for (const { asked } of run.tasks.values()) say(cx, asked, { type: "task-refused", text: `job ${run.job.id} is over` });
  run.tasks.clear();
  run.starting_chars = 0;
}

export function signalTask(cx: Context, asked: number, signal: number): void {
  for (const run of cx.state.runs.values())
    for (const [number, task] of run.tasks)
      if (task.asked === asked && task.pid > 0)
        cx.actions.push({ kind: "signal", run: { job: taskName(run.job.id, number), run_count: run.job.run_count }, signal });
}

export function deserted(cx: Context, asked: number): void {
  for (const run of cx.state.runs.values()) for (const task of run.tasks.values()) if (task.asked === asked) task.asked = null;
}

// ---- after a restart of mom or starter

/** Takes over what the starter knows about a task. Returns false if the entry is not a task, or is not of a run here. */
export function takeTask(cx: Context, entry: StarterRun): boolean {
  const name = taskOf(entry.job);
  const run = name === null ? undefined : cx.state.runs.get(name.job);
  if (name === null || run?.job.run_count !== entry.run_count) return false;
  run.next_task = Math.max(run.next_task, name.task + 1);
  if (entry.state === "running") {
    const known = run.tasks.get(name.task);
    if (known === undefined) run.tasks.set(name.task, { asked: null, pid: entry.pid });
    else taskStarted(cx, entry);
  } else if (entry.state === "ended") taskExited(cx, entry.exit);
  else forget(cx, entry);
  return true;
}

/** Removes the tasks that the starter does not know: they no longer exist. */
export function missTasks(cx: Context, run: Run, known: ReadonlyMap<string, StarterRun>): void {
  for (const [number, task] of [...run.tasks]) {
    if (known.has(taskName(run.job.id, number))) continue;
    run.tasks.delete(number);
    started(run, task);
    const answer = { type: "task-refused", text: "the starter was lost" } as const;
    endNamed(run, task, answer);
    say(cx, task.asked, answer);
  }
}

// ---- usage

/** Sums the samples of a run's top process, of its tasks and of adopted sessions. Returns undefined if the top process is not among the samples. */
export function seenOfRun(cx: Context, run: Run, pid: number, seen: ReadonlyMap<number, Seen>): Seen | undefined {
  const own = seen.get(pid);
  if (own === undefined || (run.tasks.size === 0 && run.tasks_cput_s === 0 && run.adopted.size === 0)) return own;
  const others = [...run.adopted].flatMap(([session, known]) => {
    const now = seen.get(session);
    if (now !== undefined) known.cput_s = Math.max(known.cput_s, now.cput_s);
    else {
      // The session is empty; its number may be reused.
      run.adopted.delete(session);
      run.tasks_cput_s += known.cput_s;
      saveTasks(cx, run);
    }
    return now === undefined ? [] : { ...now, cput_s: known.cput_s };
  });
  const parts = [own, ...others, ...[...run.tasks.values()].flatMap((task) => seen.get(task.pid) ?? [])];
  const sum = (of: (part: Seen) => number): number => parts.reduce((total, part) => total + of(part), 0);
  return {
    cput_s: sum(({ cput_s }) => cput_s) + run.tasks_cput_s,
    mem_kb: sum(({ mem_kb }) => mem_kb),
    vmem_kb: sum(({ vmem_kb }) => vmem_kb),
  };
}
