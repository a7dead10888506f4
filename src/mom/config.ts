// mom_priv/config (pbs/mom.md 7): text to settings. Pure.
//
// K1. A wrong value stops the start (errors); a directive that is unknown, or known but without effect yet, is named in the log and ignored (notes).

import { parseDuration } from "#model/values/duration.ts";
import { LOG_MASK } from "#support/log-event.ts";
import { CGROUP_LIMITS, type CgroupLimit, type CgroupSettings } from "./cgroup-limits.ts";
import { SIG, signalNumber } from "./signals.ts";

export type MomSettings = {
  readonly cputmult: number;
  readonly wallmult: number;
  /** $enforce mem */
  readonly enforce_mem: boolean;
  /** $enforce delta_weightup, delta_weightdown */
  readonly weight_up: number;
  readonly weight_down: number;
  readonly logevent: number;
  readonly min_check_poll_s: number;
  readonly max_check_poll_s: number;
  readonly suspend_signal: number;
  readonly resume_signal: number;
  /** null: PBS_TMPDIR of pbs.conf, or /var/tmp */
  readonly tmpdir: string | null;
  readonly jobdir_root: string | null;
  readonly usecp: readonly (readonly [host: string, prefix: string, local: string])[];
  readonly vnodedef_additive: boolean;
  readonly prologalarm_s: number;
  readonly reject_root_scripts: boolean;
  /** $cgroups, $cgroups_pids_max */
  readonly cgroups: CgroupSettings;
  /** `name value` and `name !command` lines: resources shown to those who ask the mom */
  readonly site: { readonly [name: string]: string };
};

export type ConfigOutcome = { readonly settings: MomSettings; readonly notes: readonly string[]; readonly errors: readonly string[] };

export const DEFAULT_SETTINGS: MomSettings = Object.freeze({
  cputmult: 1,
  wallmult: 1,
  enforce_mem: false,
  weight_up: 0.4,
  weight_down: 0.1,
  logevent: LOG_MASK.mom,
  min_check_poll_s: 10,
  max_check_poll_s: 120,
  suspend_signal: SIG.STOP,
  resume_signal: SIG.CONT,
  tmpdir: null,
  jobdir_root: null,
  usecp: [],
  vnodedef_additive: true,
  prologalarm_s: 30,
  reject_root_scripts: false,
  cgroups: { track: true, enforce: new Set<CgroupLimit>(), pids_max: 16_384 },
  site: {},
});

type Draft = { -readonly [K in keyof MomSettings]: MomSettings[K] };
/** Returns what is wrong with the arguments; "" when nothing is; `note:...` for what is understood and has no effect. */
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
  (key: "tmpdir" | "jobdir_root"): Directive =>
  (draft, [text]) => {
    if (text === undefined || !text.startsWith("/")) return "must be an absolute path";
    draft[key] = text.replace(/(.)\/+$/, "$1");
    return "";
  };

function enforce(draft: Draft, [what = "", value]: readonly string[]): string {
  switch (what) {
    case "mem":
    case "!mem":
      draft.enforce_mem = what === "mem";
      return "";
    case "delta_weightup":
    case "delta_weightdown": {
      const weight = number(value, 0);
      if (weight === null || weight > 1) return `${what} must be a number from 0 to 1`;
      if (what === "delta_weightup") draft.weight_up = weight;
      else draft.weight_down = weight;
      return "";
    }
    default:
      return /^!?(cpuaverage|cpuburst|average_|delta_)/.test(what) ? `note:${what}` : `${what} cannot be enforced`;
  }
}

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

const truth =
  (key: "vnodedef_additive" | "reject_root_scripts"): Directive =>
  (draft, [text = ""]) => {
    if (!/^(true|false|yes|no|on|off|1|0)$/i.test(text)) return "must be True or False";
    draft[key] = /^(true|yes|on|1)$/i.test(text);
    return "";
  };

/** `$cgroups off`, `$cgroups track`, `$cgroups memory,pids`, `$cgroups all`: limits are only kept for jobs that have a group. */
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

const later: Directive = () => "note:";

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
  prologalarm: seconds("prologalarm_s"),
  reject_root_scripts: truth("reject_root_scripts"),
  cgroups,
  cgroups_pids_max,
  // Who may contact a mom that listens to nobody but its own server's socket is settled.
  clienthost: () => "",
  restricted: () => "",
  action: later,
  checkpoint_path: later,
  ideal_load: later,
  max_load: later,
  job_launch_delay: later,
  kbd_idle: later,
  max_poll_downtime: later,
  restart_background: later,
  restart_transmogrify: later,
  restrict_user: later,
  restrict_user_exceptions: later,
  restrict_user_maxsysid: later,
  sister_join_job_alarm: later,
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
    if (problem.startsWith("note:")) notes.push(`${where} ${problem.slice("note:".length)}`.trimEnd().concat(" has no effect yet"));
    else if (problem !== "") errors.push(`${where} ${problem}`);
  }
  return { settings: draft, notes, errors };
}
