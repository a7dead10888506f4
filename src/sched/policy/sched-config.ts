// sched_config (docs/reference/scheduler.md 12): converts its text to a frozen record with all defaults filled in and all units converted. Mistakes are
// reported with the numbers of their lines. Pure: the caller reads the file and writes the messages to the log.
//
// C1. A line is `name: value [prime|non_prime|all|none]`; if a name has several lines, the last one counts; for keys with lists, all lines count.
// C2. A key that this release does not obey yet is accepted with its default value. Any other value is reported, so that nothing is ignored silently.

import { FAIRSHARE_ENTITIES } from "#model/fairshare.ts";
import { parseFormulaText } from "#model/formula/formula-grammar.ts";
import { BACKFILL_ORDERS, SCHED_POLICIES } from "#model/sched-policies.ts";
import { parseDuration } from "#model/values/duration.ts";
import { mustGet, present } from "#support/assert.ts";
import { MODULES_DEFAULT, moduleNamed } from "../modules/index.ts";
import type { DynProgram } from "../shapes/dyn-res.ts";
import { parseDynRes } from "../shapes/dyn-res.ts";
import type { ModuleOptions } from "../shapes/module.ts";
import { type JobSortKey, MATCHER_NAMES, type NodeSortKey, POLICY_DEFAULT, type Policy } from "../shapes/policy.ts";
import type { SiteModule, WrongModule } from "./module-line.ts";
import { optionName, readModules } from "./module-line.ts";
import { type ConfigKey, OBSOLETE, SCHED_CONFIG_KEYS } from "./sched-config-keys.ts";

export type SchedConfig = {
  readonly prime: Policy;
  readonly non_prime: Policy;
  readonly modules: readonly string[];
  /** the site's own modules in the chain */
  readonly site_modules: readonly SiteModule[];
  /** modules that the chain should have but cannot have */
  readonly wrong_modules: readonly WrongModule[];
  readonly module_options: ModuleOptions;
  /** time limits in seconds of a call of a site's module, and of the work of a service module after a cycle; 0: none */
  readonly module_alarm_s: number;
  readonly module_work_alarm_s: number;
  /** the shares of all entities that resource_group does not name */
  readonly unknown_shares: number;
  readonly dyn_res: readonly DynProgram[];
};

/** A message for the log about sched_config (class Fil). line: its number; 0: the message is about the whole file. */
export type ConfigMessage = { readonly line: number; readonly text: string };

/** Keys whose value may have several words without quotes; and the largest number of sort keys. */
const SEVERAL_WORDS: ReadonlySet<string> = new Set(["modules", "server_dyn_res", "fairshare_usage_res"]);
const SORT_KEYS_MAX = 20;
const KEYS = new Map(SCHED_CONFIG_KEYS.map((row) => [row.name, row]));

type Times = readonly ("prime" | "non_prime")[];
type Line = { readonly number: number; readonly name: string; readonly value: string; readonly times: Times };
type Mutable<T> = { -readonly [K in keyof T]: T[K] };
/** The configuration while it is being read. */
type Draft = {
  readonly prime: Mutable<Policy>;
  readonly non_prime: Mutable<Policy>;
  modules: readonly string[];
  site_modules: readonly SiteModule[];
  wrong_modules: readonly WrongModule[];
  /** for each module, its keys with their values; the last line of a key counts */
  readonly options: Map<string, Map<string, { readonly value: string; readonly line: number }>>;
  unknown_shares: number;
  alarm_s: { module_alarm: number; module_work_alarm: number };
  dyn_res: readonly DynProgram[];
  readonly messages: ConfigMessage[];
};

/** Parses sched_config. The empty text gives the defaults. */
export function parseSchedConfig(text: string): { readonly config: SchedConfig; readonly messages: readonly ConfigMessage[] } {
  const draft: Draft = {
    prime: { ...POLICY_DEFAULT },
    non_prime: { ...POLICY_DEFAULT },
    modules: MODULES_DEFAULT,
    site_modules: [],
    wrong_modules: [],
    options: new Map(),
    unknown_shares: 0,
    alarm_s: { module_alarm: 30, module_work_alarm: 600 },
    dyn_res: [],
    messages: [],
  };
  const lists = new Map<string, Line[]>();
  text.split("\n").forEach((raw, at) => {
    if (readOption(draft, raw, at + 1)) return;
    const line = readLine(raw, at + 1, draft.messages);
    if (line === null) return;
    if (KEYS.get(line.name)?.kind === "list") lists.set(line.name, [...(lists.get(line.name) ?? []), line]);
    else applyLine(draft, line);
  });
  for (const [name, lines] of lists) applyList(draft, name, lines);
  finish(draft);
  const { prime, non_prime, modules, site_modules, wrong_modules, unknown_shares, messages } = draft;
  const module_options = chainOptions(draft);
  applyMatcher(draft, module_options);
  applyOrder(draft, module_options);
  messages.sort((a, b) => a.line - b.line);
  const config = {
    prime: Object.freeze(prime),
    non_prime: Object.freeze(non_prime),
    modules,
    site_modules,
    wrong_modules,
    module_options,
    module_alarm_s: draft.alarm_s.module_alarm,
    module_work_alarm_s: draft.alarm_s.module_work_alarm,
    unknown_shares,
    dyn_res: draft.dyn_res,
  };
  return { config: Object.freeze(config), messages };
}

/** Reads a line `NAME.key: value`, in which the value is the rest of the line. Returns true if the line is such an option. */
function readOption(draft: Draft, raw: string, number: number): boolean {
  const match = /^\s*([A-Za-z_][\w-]*\.[\w.-]+)\s*:\s*(.*?)\s*$/.exec(raw);
  const name = match === null ? null : optionName(match[1] ?? "");
  if (match === null || name === null) return false;
  const value = (match[2] ?? "").replace(/^"([^"]*)"$/, "$1");
  let options = draft.options.get(name.module);
  if (options === undefined) draft.options.set(name.module, (options = new Map()));
  options.set(name.key, { value, line: number });
  return true;
}

/** Returns the options of the modules in the chain. Reports the other options. */
function chainOptions(draft: Draft): ModuleOptions {
  const result = new Map<string, ReadonlyMap<string, string>>();
  for (const [module, options] of draft.options) {
    if (draft.modules.includes(module)) {
      for (const [key, { value, line }] of options) checkOption(draft, { module, key, value, line });
      result.set(module, new Map([...options].map(([key, { value }]) => [key, value])));
    } else for (const [key, { line }] of options) draft.messages.push({ line, text: `${module}.${key}: no module ${module} in the chain` });
  }
  return result;
}

/** Enters `backfill.order` and `backfill.formula` in the policy. An unknown order was reported before; a formula is checked here. */
function applyOrder({ prime, non_prime, messages, options }: Draft, chain: ModuleOptions): void {
  const order = BACKFILL_ORDERS.find((name) => name === chain.get("backfill")?.get("order")) ?? null;
  const text = chain.get("backfill")?.get("formula") ?? "";
  const formula = text === "" ? null : parseFormulaText(text);
  if (formula?.ok === false)
    messages.push({ line: options.get("backfill")?.get("formula")?.line ?? 0, text: `Invalid backfill.formula ${text}: ${formula.fault}` });
  for (const policy of [prime, non_prime]) {
    policy.backfill_order = order;
    policy.backfill_formula = formula?.ok === true ? text : "";
  }
}

/** Enters `backfill.matcher` in the policy. An unknown matcher was reported before. */
function applyMatcher({ prime, non_prime, messages, options }: Draft, chain: ModuleOptions): void {
  const matcher = MATCHER_NAMES.find((name) => name === chain.get("backfill")?.get("matcher"));
  if (matcher === undefined) return;
  for (const policy of [prime, non_prime]) policy.matcher = matcher;
  if (matcher !== "first_fit" && [prime, non_prime].some(({ smp_cluster_dist }) => smp_cluster_dist === "round_robin"))
    messages.push({
      line: options.get("backfill")?.get("matcher")?.line ?? 0,
      text: `backfill.matcher ${matcher} has no effect while smp_cluster_dist is round_robin`,
    });
}

type Option = { readonly module: string; readonly key: string; readonly value: string; readonly line: number };

/** Checks an option of a built-in policy module. Options of other modules are checked where these modules are created. */
function checkOption(draft: Draft, { module, key, value, line }: Option): void {
  const own = draft.site_modules.some(({ name }) => name === module) ? undefined : moduleNamed(module);
  if (own?.options === undefined) return;
  const row = own.options.find(({ name }) => name === key);
  if (row === undefined) draft.messages.push({ line, text: `${module}.${key}: module ${module} has no such option` });
  else if (row.values?.includes(value) === false)
    draft.messages.push({ line, text: `Invalid ${module}.${key} ${value}: it is ${row.values.join(" or ")}` });
}

/** Returns the text of a message for the log, with the number of the line if there is one. */
export function messageText({ line, text }: ConfigMessage): string {
  return line === 0 ? text : `Error reading line ${line}: ${text}`;
}

/** Reads a line. Returns null if the line has no effect (empty, comment, unknown or obsolete name, none). */
function readLine(raw: string, number: number, messages: ConfigMessage[]): Line | null {
  const text = raw.trim();
  if (text === "" || text.startsWith("#")) return null;
  const match = /^([A-Za-z_][\w.]*)\s*:\s*(.*)$/.exec(text);
  const given = match === null ? null : readValue(match[2] ?? "", SEVERAL_WORDS.has(match[1] ?? ""));
  if (match === null || given === null) {
    messages.push({ line: number, text: "Unable to parse line" });
    return null;
  }
  const [, name = ""] = match;
  if (!KEYS.has(name)) {
    const instead = Object.hasOwn(OBSOLETE, name) ? OBSOLETE[name] : undefined;
    if (instead === undefined) messages.push({ line: number, text: "Unknown config parameter" });
    else messages.push({ line: 0, text: `Obsolete config name ${name}${instead === "" ? "" : `, instead use ${instead}`}` });
    if (name !== "strict_fifo") return null;
  }
  const times = timesOf(given.word);
  if (times === null) messages.push({ line: number, text: `Invalid prime or non_prime word ${given.word}` });
  return times === null || times.length === 0
    ? null
    : { number, name: name === "strict_fifo" ? "strict_ordering" : name, value: given.value, times };
}

/**
 * Splits a value from the word for its time: `"a b" PRIME`, `a PRIME`, or several words of which the last may be such a
 * word. Returns null if more than one word follows a quoted value.
 */
function readValue(text: string, several: boolean): { readonly value: string; readonly word: string } | null {
  const quoted = /^"([^"]*)"\s*(\S*)$/.exec(text);
  if (quoted !== null) return { value: quoted[1] ?? "", word: quoted[2] ?? "" };
  if (text.includes('"')) return null;
  const parts = text.split(/\s+/);
  const last = parts.length > 1 && ((parts.length === 2 && !several) || timesOf(parts.at(-1) ?? "") !== null) ? (parts.pop() ?? "") : "";
  return { value: parts.join(" "), word: last };
}

function timesOf(word: string): Times | null {
  switch (word.toLowerCase()) {
    case "":
    case "all":
      return ["prime", "non_prime"];
    case "prime":
      return ["prime"];
    case "non_prime":
      return ["non_prime"];
    case "none":
      return [];
    default:
      return null;
  }
}

function applyLine(draft: Draft, line: Line): void {
  const row = mustGet(KEYS, line.name);
  if (row.later !== undefined) {
    tellLater(draft, row, line);
    return;
  }
  switch (line.name) {
    case "round_robin":
    case "by_queue":
    case "strict_ordering":
    case "backfill":
    case "update_comments":
    case "allow_aoe_calendar":
    case "backfill_prime":
    case "prime_exempt_anytime_queues":
    case "fair_share":
    case "fairshare_enforce_no_shares":
    case "preemptive_sched":
      return set(draft, line, line.name, booleanOf(draft, line));
    case "primetime_prefix":
    case "nonprimetime_prefix":
    case "dedicated_prefix":
      return set(draft, line, line.name, line.value);
    case "resources":
    case "resource_unset_infinite":
    case "mom_resources":
      return set(draft, line, line.name, new Set(words(line.value)));
    case "prime_spill":
      return applyPrimeSpill(draft, line);
    case "smp_cluster_dist":
      return applyDistribution(draft, line);
    case "resv_confirm_ignore":
      if (line.value === "dedicated_time" || line.value === "none") set(draft, line, "resv_confirm_ignore", line.value);
      else tell(draft, line, `Invalid resv_confirm_ignore ${line.value}`);
      return;
    case "max_job_check":
      return applyMaxJobCheck(draft, line);
    case "preempt_attempts":
      if (/^[0-9]+$/.test(line.value)) set(draft, line, "preempt_attempts", Number(line.value));
      else tell(draft, line, `Invalid preempt_attempts ${line.value}`);
      return;
    case "policy":
      return applyNamed(draft, line);
    case "unknown_shares":
      if (/^[0-9]+$/.test(line.value)) draft.unknown_shares = Number(line.value);
      else tell(draft, line, `Invalid number of shares ${line.value}`);
      return;
    case "fairshare_usage_res":
      return applyUsageFormula(draft, line);
    case "fairshare_entity":
      return applyEntity(draft, line);
    case "fairshare_decay_time":
    case "fairshare_decay_factor":
      return applyDecay(draft, line);
    case "modules":
      return applyModules(draft, line);
    case "module_alarm":
    case "module_work_alarm":
      return applyAlarm(draft, line, line.name);
    default:
      tell(draft, line, "Unknown config parameter");
  }
}

function set<K extends keyof Policy>(draft: Draft, { times }: Line, key: K, value: Policy[K]): void {
  for (const time of times) present(draft[time], "policy")[key] = value;
}

function tell(draft: Draft, { number }: Line, text: string): void {
  draft.messages.push({ line: number, text });
}

/** Reports a key that is not obeyed yet, unless it has its default value. */
function tellLater(draft: Draft, row: ConfigKey, line: Line): void {
  const given = row.kind === "boolean" ? String(/^(true|t|yes|y|1)$/i.test(line.value)) : line.value;
  const same = row.kind === "duration" ? secondsOf(given) === secondsOf(row.default) : given === row.default;
  if (!same) tell(draft, line, `${line.name} is not supported yet: ${row.later}`);
}

function booleanOf(draft: Draft, line: Line): boolean {
  const value = /^(true|t|yes|y|1)$/i.test(line.value);
  if (!value && !/^(false|f|no|n|0)$/i.test(line.value)) tell(draft, line, `Invalid boolean ${line.value}, taken as False`);
  return value;
}

function applyDistribution(draft: Draft, line: Line): void {
  if (line.value === "pack" || line.value === "round_robin") set(draft, line, "smp_cluster_dist", line.value);
  else tell(draft, line, `Invalid smp_cluster_dist ${line.value}`);
}

/** Reads prime_spill: seconds, or HH:MM[:SS]. */
function applyPrimeSpill(draft: Draft, line: Line): void {
  const spill_s = parseDuration(line.value);
  if (spill_s === null) tell(draft, line, `Invalid prime_spill ${line.value}`);
  else set(draft, line, "prime_spill_s", spill_s);
}

function applyMaxJobCheck(draft: Draft, line: Line): void {
  if (line.value === "ALL_JOBS") set(draft, line, "max_job_check", null);
  else if (/^[0-9]+$/.test(line.value)) set(draft, line, "max_job_check", Number(line.value));
  else tell(draft, line, `Invalid max_job_check ${line.value}`);
}

/** Reads fairshare_usage_res. A malformed formula is reported here. Names of resources are checked when the server has sent them. */
function applyUsageFormula(draft: Draft, line: Line): void {
  const formula = parseFormulaText(line.value);
  if (formula.ok) set(draft, line, "fairshare_usage_res", line.value);
  else tell(draft, line, `Invalid fairshare_usage_res ${line.value}: ${formula.fault}`);
}

function applyEntity(draft: Draft, line: Line): void {
  const entity = FAIRSHARE_ENTITIES.find((name) => name.toLowerCase() === line.value.toLowerCase());
  if (entity === undefined) tell(draft, line, `Invalid fairshare_entity ${line.value}: one of ${FAIRSHARE_ENTITIES.join(", ")}`);
  else set(draft, line, "fairshare_entity", entity);
}

/** Reads fairshare_decay_time, where 0 means never, or fairshare_decay_factor, which must be between 0 and 1. */
function applyDecay(draft: Draft, line: Line): void {
  const isTime = line.name === "fairshare_decay_time";
  const value = isTime ? parseDuration(line.value) : /^(0?\.[0-9]+|[01](\.[0-9]*)?)$/.test(line.value) ? Number(line.value) : null;
  if (value === null || (!isTime && value > 1)) return tell(draft, line, `Invalid ${line.name} ${line.value}`);
  const rule = { ...draft.prime.fairshare_decay, ...(isTime ? { time_s: value } : { factor: value }) };
  set(draft, line, "fairshare_decay", rule);
}

function applyNamed(draft: Draft, line: Line): void {
  const named = SCHED_POLICIES.find((name) => name === line.value);
  if (named === undefined) tell(draft, line, `Invalid policy ${line.value}: one of ${SCHED_POLICIES.join(", ")}`);
  else set(draft, line, "named", named);
}

function applyAlarm(draft: Draft, line: Line, name: keyof Draft["alarm_s"]): void {
  const alarm_s = parseDuration(line.value);
  if (line.times.length < 2) tell(draft, line, `${name} cannot differ between prime and non-prime time`);
  else if (alarm_s === null) tell(draft, line, `Invalid ${name} ${line.value}`);
  else draft.alarm_s[name] = alarm_s;
}

function applyModules(draft: Draft, line: Line): void {
  if (line.times.length < 2) return tell(draft, line, "modules cannot differ between prime and non-prime time");
  const { names, site, wrong } = readModules(line.value);
  for (const { text } of wrong) tell(draft, line, text);
  draft.wrong_modules = wrong.filter(({ name }) => !names.includes(name));
  draft.modules = names;
  draft.site_modules = site;
}

function applyList(draft: Draft, name: string, lines: readonly Line[]): void {
  const row = mustGet(KEYS, name);
  for (const line of lines) if (row.later !== undefined) tellLater(draft, row, line);
  if (name === "server_dyn_res") applyDynRes(draft, lines);
  if (name === "job_sort_key") applySortKeys(draft, lines, "job_sort_key", jobSortKey);
  if (name === "node_sort_key") applySortKeys(draft, lines, "node_sort_key", nodeSortKey);
}

/** Reads the programs of server_dyn_res. A resource has one program: the last line counts. */
function applyDynRes(draft: Draft, lines: readonly Line[]): void {
  const programs = new Map<string, DynProgram>();
  for (const line of lines) {
    const program = parseDynRes(line.value);
    if (typeof program === "string") tell(draft, line, program);
    else programs.set(program.resource, program);
  }
  draft.dyn_res = [...programs.values()];
}

function applySortKeys<K extends "job_sort_key" | "node_sort_key">(
  draft: Draft,
  lines: readonly Line[],
  key: K,
  read: (words: readonly string[]) => Policy[K][number] | string,
): void {
  const keys: { prime: Policy[K][number][]; non_prime: Policy[K][number][] } = { prime: [], non_prime: [] };
  for (const line of lines) {
    const given = read(line.value.trim().split(/\s+/));
    if (typeof given === "string") tell(draft, line, given);
    else
      for (const time of line.times) {
        if (keys[time].length < SORT_KEYS_MAX) keys[time].push(given);
        else tell(draft, line, `more than ${SORT_KEYS_MAX} keys`);
      }
  }
  if (keys.prime.length > 0) draft.prime[key] = keys.prime as Policy[K] & Mutable<Policy>[K];
  if (keys.non_prime.length > 0) draft.non_prime[key] = keys.non_prime as Policy[K] & Mutable<Policy>[K];
}

/** Reads a sort key. Returns a text that names the mistake if there is one. */
function jobSortKey([key = "", order = ""]: readonly string[]): JobSortKey | string {
  const high = highOf(order);
  if (key === "" || high === null) return "Invalid job_sort_key";
  if (key === "preempt_priority") return `job_sort_key ${key} is not supported yet and left out`;
  return { key, high };
}

function nodeSortKey([key = "", order = "", amount = "total"]: readonly string[]): NodeSortKey | string {
  const high = highOf(order);
  if (key === "" || high === null || (amount !== "total" && amount !== "assigned" && amount !== "unused")) return "Invalid node_sort_key";
  return { key, high, amount };
}

function highOf(order: string): boolean | null {
  const word = order.toLowerCase();
  return word === "high" ? true : word === "low" ? false : null;
}

/** Applies the rules that concern several keys. */
function finish(draft: Draft): void {
  for (const time of ["prime", "non_prime"] as const) {
    const policy = draft[time];
    if (policy.smp_cluster_dist === "round_robin" && policy.node_sort_key.some(({ amount }) => amount !== "total")) {
      policy.smp_cluster_dist = "pack";
      draft.messages.push({ line: 0, text: "smp_cluster_dist is pack: node_sort_key is sorted by unused or assigned amounts" });
    }
  }
  const texts = new Set<string>();
  const once = draft.messages.filter(({ line, text }) => line !== 0 || (!texts.has(text) && texts.add(text)));
  draft.messages.splice(0, draft.messages.length, ...once);
}

function secondsOf(text: string): number {
  return text.split(":").reduce((sum, part) => sum * 60 + Number(part), 0);
}

function words(text: string): string[] {
  return text
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");
}
