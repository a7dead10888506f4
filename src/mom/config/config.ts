// Parses mom_priv/config (docs/reference/execution.md 7) into settings. Pure.
//
// K1. A wrong value is an error, and the mom does not start. A directive that is unknown, or known but without effect, is ignored; the log names it (notes).
// K2. Every message names the line. docs/node-configuration.md lists all directives.

import { parseDuration } from "#model/values/duration.ts";
import type { MomPatience } from "#protocol/mom-link.ts";
import { LIMITS } from "#protocol/wire/limits.ts";
import { LOG_MASK } from "#support/log-event.ts";
import { CGROUP_LIMITS, type CgroupLimit, type CgroupSettings } from "../job/cgroup-limits.ts";
import { type CpuEnforcement, NO_CPU_ENFORCEMENT } from "../job/limits.ts";
import { SIG, signalNumber } from "../job/signals.ts";
import { type Actions, parseAction } from "./action-script.ts";
import type { KeyboardLimits, LoadLimits } from "./node-load.ts";
import { RESTRICT_NOBODY, type RestrictUser } from "./strangers.ts";

export type MomSettings = {
  readonly cputmult: number;
  readonly wallmult: number;
  /** $enforce mem */
  readonly enforce_mem: boolean;
  /** $enforce cpuaverage, $enforce cpuburst and the numbers that belong to them */
  readonly enforce_cpu: CpuEnforcement;
  /** $enforce delta_weightup, delta_weightdown */
  readonly weight_up: number;
  readonly weight_down: number;
  readonly logevent: number;
  readonly min_check_poll_s: number;
  readonly max_check_poll_s: number;
  /** $status_interval: how often a mom reports to a server on another host */
  readonly status_interval_s: number;
  /** $multicast_interface: name or address of the network interface for commands by multicast; null: the interface through which the mom reaches the server */
  readonly multicast_interface: string | null;
  readonly suspend_signal: number;
  readonly resume_signal: number;
  /** $tmpdir; null: PBS_TMPDIR of pbs.conf, or /var/tmp */
  readonly tmpdir: string | null;
  readonly jobdir_root: string | null;
  readonly usecp: readonly (readonly [host: string, prefix: string, local: string])[];
  readonly vnodedef_additive: boolean;
  readonly prologalarm_s: number;
  readonly reject_root_scripts: boolean;
  /** $action: scripts that replace actions of the mom */
  readonly actions: Actions;
  readonly restart_transmogrify: boolean;
  /** $action multinodebusy 0 requeue */
  readonly multinode_requeue: boolean;
  /** $checkpoint_path; null: HOME/checkpoint */
  readonly checkpoint_path: string | null;
  /** $ideal_load, $max_load */
  readonly load: LoadLimits;
  /** $max_load N suspend: jobs are suspended while the load is above N */
  readonly suspend_on_load: boolean;
  /** $kbd_idle; null: keyboard input is ignored */
  readonly kbd_idle: KeyboardLimits | null;
  readonly restrict_user: RestrictUser;
  /** $cgroups, $cgroups_pids_max */
  readonly cgroups: CgroupSettings;
  /** $sister_join_job_alarm, $job_launch_delay, $max_poll_downtime: for jobs on several hosts whose first host is this one */
  readonly patience: MomPatience;
  /**
   * $tasks_max: the largest number of tasks of one job that run here at a time. It also limits the tasks that run on the
   * job's other hosts and were requested from here
   */
  readonly tasks_max: number;
  /** $copy_patience: if a copy to or from another host fails for a reason that may pass, it is tried again for this many seconds */
  readonly copy_patience_s: number;
  /** $task_text_max: the largest length of the arguments and the environment of a task, in characters */
  readonly task_text_max: number;
  /** `name value` and `name !command` lines: resources reported to clients that query the mom */
  readonly site: { readonly [name: string]: string };
};

export type ConfigOutcome = { readonly settings: MomSettings; readonly notes: readonly string[]; readonly errors: readonly string[] };

export const DEFAULT_SETTINGS: MomSettings = Object.freeze({
  cputmult: 1,
  wallmult: 1,
  enforce_mem: false,
  enforce_cpu: NO_CPU_ENFORCEMENT,
  weight_up: 0.4,
  weight_down: 0.1,
  logevent: LOG_MASK.mom,
  min_check_poll_s: 10,
  max_check_poll_s: 120,
  status_interval_s: 15,
  multicast_interface: null,
  suspend_signal: SIG.STOP,
  resume_signal: SIG.CONT,
  tmpdir: null,
  jobdir_root: null,
  usecp: [],
  vnodedef_additive: true,
  prologalarm_s: 30,
  reject_root_scripts: false,
  actions: {},
  restart_transmogrify: false,
  multinode_requeue: false,
  checkpoint_path: null,
  load: { ideal: null, max: null },
  suspend_on_load: false,
  kbd_idle: null,
  restrict_user: RESTRICT_NOBODY,
  cgroups: { track: true, enforce: new Set<CgroupLimit>(), pids_max: 16_384 },
  patience: {},
  tasks_max: 4096,
  copy_patience_s: 120,
  task_text_max: LIMITS.task_text_chars_max,
  site: {},
});

/** Smallest value of $task_text_max. */
const TASK_TEXT_CHARS_MIN = 4096;

/** Text that may be the name of a network interface, or an address. */
const INTERFACE = /^[\w.:@-]{1,64}$/;

type Draft = { -readonly [K in keyof MomSettings]: MomSettings[K] };
/**
 * Handles the arguments of a directive. Returns the mistake in them, or "" if there is none. If the directive has no effect, returns `note:` and the reason.
 */
type Directive = (draft: Draft, args: readonly string[]) => string;

const number = (text: string | undefined, least: number): number | null => {
  const value = text === undefined || text === "" ? Number.NaN : Number(text);
  return Number.isFinite(value) && value >= least ? value : null;
};

const factor =
  (key: "cputmult" | "wallmult"): Directive =>
  (draft, [text]) => {
    const value = number(text, 0);
    if (value === null) return "must be a number";
    // A limit of 0 would never count as exceeded.
    if (value === 0) return "must be larger than 0";
    draft[key] = value;
    return "";
  };

const seconds =
  (key: "min_check_poll_s" | "max_check_poll_s" | "prologalarm_s"): Directive =>
  (draft, [text]) => {
    const value = parseDuration(text ?? "");
    if (value === null || value < 1) return "must be a number of seconds";
    draft[key] = value;
    return "";
  };

const directory =
  (key: "tmpdir" | "jobdir_root" | "checkpoint_path"): Directive =>
  (draft, [text]) => {
    if (text === undefined || !text.startsWith("/")) return "must be an absolute path";
    draft[key] = text.replace(/(.)\/+$/, "$1");
    return "";
  };

/** The words of $enforce that take a number: the setting, and the smallest value allowed. */
const ENFORCE_FIGURES: { readonly [word: string]: readonly [key: keyof CpuEnforcement, least: number] } = {
  average_trialperiod: ["trialperiod_s", 0],
  average_percent_over: ["average_percent_over", 0],
  average_cpufactor: ["average_cpufactor", 0],
  delta_percent_over: ["delta_percent_over", 0],
  delta_cpufactor: ["delta_cpufactor", 0],
};

/** Handles $enforce. `!` before a word switches it off, as in PBS. */
function enforce(draft: Draft, [word = "", value]: readonly string[]): string {
  const on = !word.startsWith("!");
  const what = on ? word : word.slice(1);
  switch (what) {
    case "mem":
      draft.enforce_mem = on;
      return "";
    case "cpuaverage":
      draft.enforce_cpu = { ...draft.enforce_cpu, average: on };
      return "";
    case "cpuburst":
      draft.enforce_cpu = { ...draft.enforce_cpu, burst: on };
      return "";
    case "complexmem":
      return "note:complexmem has no effect: memory is counted by process and control group on this system";
    case "delta_weightup":
    case "delta_weightdown": {
      const weight = number(value, 0);
      if (weight === null || weight > 1) return `${what} must be a number from 0 to 1`;
      if (what === "delta_weightup") draft.weight_up = weight;
      else draft.weight_down = weight;
      return "";
    }
  }
  const figure = Object.hasOwn(ENFORCE_FIGURES, what) ? ENFORCE_FIGURES[what] : undefined;
  if (figure === undefined || !on) return `${word} cannot be enforced`;
  const [key, least] = figure;
  const amount = number(value, least);
  if (amount === null) return `${what} must be a number`;
  draft.enforce_cpu = { ...draft.enforce_cpu, [key]: amount };
  return "";
}

function action(draft: Draft, args: readonly string[]): string {
  const line = parseAction(args);
  if (line.kind === "wrong") return line.text;
  if (line.kind === "multinodebusy") draft.multinode_requeue = true;
  else draft.actions = { ...draft.actions, [line.action]: line.script };
  return "";
}

function ideal_load(draft: Draft, [text]: readonly string[]): string {
  const ideal = number(text, 0);
  if (ideal === null) return "must be a number";
  draft.load = { ...draft.load, ideal };
  return "";
}

function max_load(draft: Draft, [text, more]: readonly string[]): string {
  const max = number(text, 0);
  if (max === null || (more !== undefined && more !== "suspend")) return "must be a number, perhaps with suspend after it";
  draft.load = { ...draft.load, max };
  draft.suspend_on_load = more === "suspend";
  return "";
}

function kbd_idle(draft: Draft, [wait, use = "10", poll = "1"]: readonly string[]): string {
  const [idle_wait_s, min_use_s, poll_s] = [number(wait, 1), number(use, 0), number(poll, 1)];
  if (idle_wait_s === null || min_use_s === null || poll_s === null) return "must be IDLE_WAIT [MIN_USE POLL], in seconds";
  draft.kbd_idle = { idle_wait_s, min_use_s, poll_s };
  return "";
}

const NAMES_MAX = 1000;

const restrict: { readonly [name: string]: Directive } = {
  restrict_user: (draft, [text = ""]) => {
    if (!TRUTH.test(text)) return "must be True or False";
    draft.restrict_user = { ...draft.restrict_user, on: TRUE.test(text) };
    return "";
  },
  restrict_user_exceptions: (draft, args) => {
    const exceptions = args.flatMap((arg) => arg.split(",")).filter((user) => user !== "");
    if (exceptions.length === 0 || exceptions.length > NAMES_MAX) return `must be 1 to ${NAMES_MAX} names of users`;
    draft.restrict_user = { ...draft.restrict_user, exceptions };
    return "";
  },
  restrict_user_maxsysid: (draft, [text]) => {
    const maxsysid = number(text, 0);
    if (maxsysid === null || !Number.isInteger(maxsysid)) return "must be a user's number";
    draft.restrict_user = { ...draft.restrict_user, maxsysid };
    return "";
  },
};

function suspendsig(draft: Draft, [suspend, resume]: readonly string[]): string {
  const stop = signalNumber(suspend ?? "");
  const go = resume === undefined ? SIG.CONT : signalNumber(resume);
  if (!stop || !go) return "must be signal numbers";
  draft.suspend_signal = stop;
  draft.resume_signal = go;
  return "";
}

function usecp(draft: Draft, [from = "", to]: readonly string[]): string {
  const colon = from.indexOf(":");
  if (colon < 1 || to === undefined) return "must be HOST:PREFIX LOCALPREFIX";
  draft.usecp = [...draft.usecp, [from.slice(0, colon), from.slice(colon + 1), to]];
  return "";
}

function logevent(draft: Draft, [text = ""]: readonly string[]): string {
  const mask = Number(text);
  if (text === "" || !Number.isInteger(mask)) return "must be a number";
  draft.logevent = mask & 0xffff;
  return "";
}

const TRUTH = /^(true|false|yes|no|on|off|1|0)$/i;
const TRUE = /^(true|yes|on|1)$/i;

const truth =
  (key: "vnodedef_additive" | "reject_root_scripts" | "restart_transmogrify"): Directive =>
  (draft, [text = ""]) => {
    if (!TRUTH.test(text)) return "must be True or False";
    draft[key] = TRUE.test(text);
    return "";
  };

/** Handles `$cgroups off`, `$cgroups track`, `$cgroups memory,pids`, `$cgroups all`. Limits need groups, so naming a limit also switches tracking on. */
function cgroups(draft: Draft, args: readonly string[]): string {
  const words = args.flatMap((arg) => arg.split(",")).filter((word) => word !== "");
  const enforce = new Set<CgroupLimit>();
  for (const word of words) {
    if (word === "all") for (const limit of CGROUP_LIMITS) enforce.add(limit);
    else if ((CGROUP_LIMITS as readonly string[]).includes(word)) enforce.add(word as CgroupLimit);
    else if (word !== "track" && word !== "off") return `must be off, track, all, or some of ${CGROUP_LIMITS.join(",")}`;
  }
  if (words.length === 0 || (words.includes("off") && words.length > 1))
    return `must be off, track, all, or some of ${CGROUP_LIMITS.join(",")}`;
  draft.cgroups = { ...draft.cgroups, track: words[0] !== "off", enforce };
  return "";
}

function cgroups_pids_max(draft: Draft, [text]: readonly string[]): string {
  const most = number(text, 1);
  if (most === null || !Number.isInteger(most)) return "must be a number of processes";
  draft.cgroups = { ...draft.cgroups, pids_max: most };
  return "";
}

const COPY_PATIENCE_S_MAX = 86_400;

function copy_patience(draft: Draft, [text]: readonly string[]): string {
  const seconds = number(text, 0);
  if (seconds === null || !Number.isInteger(seconds) || seconds > COPY_PATIENCE_S_MAX)
    return `must be a number of seconds, at most ${COPY_PATIENCE_S_MAX}`;
  draft.copy_patience_s = seconds;
  return "";
}

function tasks_max(draft: Draft, [text]: readonly string[]): string {
  const most = number(text, 0);
  if (most === null || !Number.isInteger(most)) return "must be a number of tasks";
  draft.tasks_max = most;
  return "";
}

function task_text_max(draft: Draft, [text]: readonly string[]): string {
  const most = number(text, TASK_TEXT_CHARS_MIN);
  if (most === null || !Number.isInteger(most) || most > LIMITS.task_text_chars_max)
    return `must be a number of characters from ${TASK_TEXT_CHARS_MIN} to ${LIMITS.task_text_chars_max}`;
  draft.task_text_max = most;
  return "";
}

function status_interval(draft: Draft, [text]: readonly string[]): string {
  const value = parseDuration(text ?? "");
  if (value === null || value < 1 || value > LIMITS.status_interval_s_max) return `must be 1 to ${LIMITS.status_interval_s_max} seconds`;
  draft.status_interval_s = value;
  return "";
}

function multicast_interface(draft: Draft, [text = ""]: readonly string[]): string {
  if (!INTERFACE.test(text)) return "must be the name or an address of a network interface";
  draft.multicast_interface = text;
  return "";
}

const patience =
  (key: keyof MomPatience): Directive =>
  (draft, [text]) => {
    const value = parseDuration(text ?? "");
    if (value === null || value < 1) return "must be a number of seconds";
    draft.patience = { ...draft.patience, [key]: value };
    return "";
  };

/** $restart_background. It has no effect: a restart script is the job's top process, so nothing waits for it. */
const background: Directive = (_, [text = ""]) => {
  if (!TRUTH.test(text)) return "must be True or False";
  return TRUE.test(text) ? "" : "note:has no effect: a restart script always runs in the background, as the job's top process";
};

const DIRECTIVES: { readonly [name: string]: Directive } = {
  cputmult: factor("cputmult"),
  wallmult: factor("wallmult"),
  enforce,
  suspendsig,
  usecp,
  logevent,
  min_check_poll: seconds("min_check_poll_s"),
  max_check_poll: seconds("max_check_poll_s"),
  tmpdir: directory("tmpdir"),
  jobdir_root: directory("jobdir_root"),
  vnodedef_additive: truth("vnodedef_additive"),
  status_interval,
  multicast_interface,
  prologalarm: seconds("prologalarm_s"),
  reject_root_scripts: truth("reject_root_scripts"),
  cgroups,
  cgroups_pids_max,
  // In PBS, these two directives name the hosts whose clients may query the mom. Here the mom takes no such queries.
  clienthost: () => "",
  restricted: () => "",
  action,
  checkpoint_path: directory("checkpoint_path"),
  ideal_load,
  max_load,
  kbd_idle,
  restart_background: background,
  restart_transmogrify: truth("restart_transmogrify"),
  ...restrict,
  copy_patience,
  tasks_max,
  task_text_max,
  job_launch_delay: patience("launch_s"),
  max_poll_downtime: patience("downtime_s"),
  sister_join_job_alarm: patience("join_s"),
};

export function parseMomConfig(text: string): ConfigOutcome {
  const draft: Draft = { ...DEFAULT_SETTINGS };
  const notes: string[] = [];
  const errors: string[] = [];
  for (const [at, raw] of text.split("\n").entries()) {
    const line = raw.trim();
    if (line === "" || line.startsWith("#")) continue;
    const [word = "", ...args] = line.split(/[ \t]+/);
    if (!word.startsWith("$")) {
      draft.site = { ...draft.site, [word]: line.slice(word.length).trim() };
      continue;
    }
    const directive = Object.hasOwn(DIRECTIVES, word.slice(1)) ? DIRECTIVES[word.slice(1)] : undefined;
    const where = `config line ${at + 1}: ${word}`;
    if (directive === undefined) {
      notes.push(`${where} is not known and ignored`);
      continue;
    }
    const problem = directive(draft, args);
    if (problem.startsWith("note:")) notes.push(`${where} ${problem.slice("note:".length)}`);
    else if (problem !== "") errors.push(`${where} ${problem}`);
  }
  if (draft.load.ideal !== null && draft.load.max === null) notes.push("config: $ideal_load has no effect without $max_load");
  if (draft.load.ideal !== null && draft.load.max !== null && draft.load.ideal > draft.load.max)
    errors.push("config: $ideal_load must not be larger than $max_load");
  if (draft.min_check_poll_s > draft.max_check_poll_s) errors.push("config: $min_check_poll must not be larger than $max_check_poll");
  return { settings: draft, notes, errors };
}
