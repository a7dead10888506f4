// A mom core in a test: events in, actions out as short words, so that a test reads as a table.

import { NO_CPU_ENFORCEMENT } from "#mom/job/limits.ts";
import type { Owner } from "#mom/job/plan.ts";
import { checkMomInvariants, makeMomState, reduce } from "#mom/run/core.ts";
import type { MomEvent } from "#mom/run/event.ts";
import type { MomAction, MomConfig, MomState, SavedRun } from "#mom/run/state.ts";
import type { MomJob } from "#protocol/mom-link.ts";

export const CONFIG: MomConfig = {
  host: "n1",
  boot: "boot-1",
  facts: {
    home: "/pbs",
    hosts: ["n1", "localhost"],
    server_host: "head",
    tmpdir: "/var/tmp",
    jobdir_root: null,
    usecp: [["*.far.org", "/data/", "/mnt/far/"]],
    far: null,
    scp: ["/usr/bin/scp", "-Brp"],
    port: 15003,
    site: [["PATH", "/bin"]],
    commands: null,
  },
  cgroups: { track: false, enforce: new Set(), pids_max: 1000 },
  cpus: [0, 1, 2, 3],
  enforce: { mem: false, cputmult: 1, wallmult: 1, cpu: NO_CPU_ENFORCEMENT },
  weights: { up: 0.4, down: 0.1 },
  suspend_signal: 19,
  resume_signal: 18,
  node: { load: { ideal: null, max: null }, suspend_on_load: false, kbd_idle: null, multinode_requeue: false },
  actions: {},
  restart_transmogrify: false,
  checkpoint_path: "/pbs/checkpoint",
  own: { uid: 0, gid: 0 },
  prologalarm_s: 30,
  reject_root_scripts: false,
  tasks_max: 4096,
  task_text_max: 1_000_000,
  server: "server",
  kill_found: false,
};

export const OWNER: Owner = {
  user: "alice",
  home: "/home/alice",
  shell: "/bin/bash",
  identity: { uid: 1001, gid: 100, groups: [100, 27] },
};

export function job(overrides: Partial<Omit<MomJob, "attrs">> & { readonly attrs?: MomJob["attrs"] } = {}): MomJob {
  const { attrs, ...rest } = overrides;
  return {
    id: "1.n1",
    run_count: 1,
    user: "alice",
    group: "users",
    queue: "workq",
    exec_host: "n1/0",
    exec_vnode: "(n1:ncpus=1)",
    script: "echo hi\n",
    kill_delay_s: 10,
    cookie: "secret",
    ...rest,
    attrs: {
      Job_Name: "name",
      Join_Path: "n",
      Keep_Files: "n",
      Rerunable: true,
      schedselect: "1:ncpus=1",
      Resource_List: { ncpus: 1 },
      Output_Path: "n1:/home/alice/name.o1",
      Error_Path: "n1:/home/alice/name.e1",
      ...attrs,
    },
  };
}

export type World = {
  readonly state: MomState;
  /** the last record of each job, as a restarted mom finds it */
  readonly records: Map<string, SavedRun>;
  now_ms: number;
  /** every action of the event as a word (see wordOf), without log lines and disk writes */
  on(event: MomEvent): string[];
  /** texts of log records since the last call */
  logged(): string[];
  readonly actions: MomAction[];
};

/** connected and welcomed by default; without prologue and epilogue unless the test answers for scripts. */
export function world(
  options: {
    readonly config?: Partial<MomConfig>;
    readonly welcomed?: boolean;
    readonly scripts?: boolean;
    readonly checkpoints?: readonly string[];
  } = {},
): World {
  const state = makeMomState({ ...CONFIG, ...options.config }, options.checkpoints);
  const logs: string[] = [];
  /** Answers that there is no such script; the following actions take its place. */
  const withoutScripts = (action: MomAction): MomAction[] =>
    options.scripts === true || action.kind !== "run-script"
      ? [action]
      : reduce(state, { kind: "scripted", step: action.step, end: { kind: "none" } }, w.now_ms).flatMap(withoutScripts);
  const w: World = {
    state,
    records: new Map(),
    now_ms: 1_000_000,
    actions: [],
    on(event) {
      const actions = reduce(state, event, w.now_ms).flatMap(withoutScripts);
      checkMomInvariants(state);
      w.actions.push(...actions);
      for (const action of actions) {
        if (action.kind === "save") w.records.set(action.record.job.id, JSON.parse(JSON.stringify(action.record)) as SavedRun);
        if (action.kind === "save-tasks") {
          const record = w.records.get(action.run.job);
          if (record !== undefined) w.records.set(action.run.job, { ...record, tasks: action.tasks });
        }
        if (action.kind === "drop") w.records.delete(action.run.job);
        if (action.kind === "log") logs.push(action.text);
      }
      return actions.filter(({ kind }) => !UNSAID.has(kind)).map(wordOf);
    },
    logged: () => logs.splice(0),
  };
  if (options.welcomed !== false) {
    w.on({ kind: "connected" });
    w.on({ kind: "welcome", data: { keep: [], kill: [], acknowledged: [] } });
  }
  return w;
}

const UNSAID: ReadonlySet<MomAction["kind"]> = new Set(["log", "save", "save-tasks", "note-kept"]);

/** `prepare 1.n1`, `signal 1.n1 15`, `mom-obit 1.n1 0`, ... */
function wordOf(action: MomAction): string {
  switch (action.kind) {
    case "send":
      switch (action.type) {
        case "mom-obit":
          return `mom-obit ${action.data.job} ${action.data.exit_status}`;
        case "mom-started":
        case "mom-joined":
          return `${action.type} ${action.data.job}`;
        case "mom-result":
          return `mom-result ${action.data.ok ? "ok" : action.data.code}`;
        case "mom-usage":
          return `mom-usage ${action.data.jobs.map((each) => each.job).join()}`;
        case "mom-hook":
          return `mom-hook ${JSON.stringify(action.data)}`;
        case "mom-site":
          return `mom-site ${JSON.stringify(action.data.resources)}`;
        case "mom-busy":
          return `mom-busy ${action.data.busy}`;
        case "mom-idled":
          return `mom-idled ${action.data.job} ${action.data.idled}`;
        case "mom-kept":
          return `mom-kept ${action.data.job} ${action.data.text}`;
      }
      break;
    case "run-hooks":
      return `hooks ${action.input.event} ${action.hooks.map(({ name }) => name).join()}`;
    case "run-script":
      return `script ${action.script} ${action.args.join("|")}`;
    case "prepare":
      return `prepare ${action.request.plan.job}`;
    case "start":
      return `start ${action.spec.job}`;
    case "signal":
      return `signal ${action.run.job} ${action.signal}`;
    case "finish":
      return `finish ${action.request.plan.job} ${action.request.output}`;
    case "run-action":
      return `action ${action.argv.join(" ")}`;
    case "drop-checkpoint":
      return `drop-checkpoint ${action.path}`;
    case "append":
      return `append ${action.path} ${action.text.trimEnd()}`;
    case "drop":
      return `drop ${action.run.job} ${action.run.run_count}`;
    case "purge":
      return `purge ${action.paths.join()}`;
  }
  return action.kind;
}

export const prepared = (of: MomJob): MomEvent => ({
  kind: "prepared",
  outcome: { job: of.id, run_count: of.run_count, ok: true, stdout: `/pbs/spool/${of.id}.OU`, stderr: `/pbs/spool/${of.id}.ER` },
});
export const started = (of: MomJob, at_ms: number, pid = 4711): MomEvent => ({
  kind: "started",
  run: { job: of.id, run_count: of.run_count, pid, at_ms },
});
export const exited = (of: MomJob, at_ms: number, status: { code: number } | { signal: number }, cput_s = 0): MomEvent => ({
  kind: "exited",
  run: { job: of.id, run_count: of.run_count, status, cput_s, at_ms },
});
export const finished = (of: MomJob, failures: readonly string[] = []): MomEvent => ({
  kind: "finished",
  outcome: { job: of.id, run_count: of.run_count, delivered: 2 - failures.length, total: 2, failures },
});
export const acknowledged = (of: MomJob): MomEvent => ({ kind: "acknowledged", data: { jobs: [{ job: of.id, run_count: of.run_count }] } });

/** Advances the job until it runs. */
export function run(w: World, of: MomJob, pid = 4711): void {
  w.on({ kind: "start", job: of, owner: OWNER });
  w.on(prepared(of));
  w.on(started(of, w.now_ms, pid));
}
