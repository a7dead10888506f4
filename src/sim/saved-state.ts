// A complex at one moment in one file: `partita sim --save` writes it and `--state` reads it. The file has the rows of the
// server's store, the configuration files of each scheduler, and the time. It has no scripts, environments, secrets or hooks,
// because scheduling does not use them.

import { type Settings, type SettingsTexts, settingsOf } from "#sched/policy/settings-text.ts";
import type { LocalTime } from "#sched/shapes/local-time.ts";
import { sharedAttrs } from "#server/state/intern.ts";
import { stateOfRows } from "#server/state/load.ts";
import type { JobAttrs, ServerState } from "#server/state/state.ts";
import type { Loaded } from "#store/store.ts";

export const STATE_FORMAT = "partita-state";
export const STATE_VERSION = 1;

export type SavedState = {
  readonly format: typeof STATE_FORMAT;
  readonly version: number;
  /** when it was saved, in epoch seconds */
  readonly saved_s: number;
  /** the server's name */
  readonly server: string;
  /** user mode: the user to whom all jobs belong; null: system mode */
  readonly own_user: string | null;
  readonly rows: Loaded;
  /** the configuration files of each scheduler, by its name */
  readonly scheds: { readonly [name: string]: SettingsTexts };
};

export class StateError extends Error {
  override readonly name = "StateError";
}

/** Attributes of jobs that are not saved, because they are not needed or are private. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  "Variable_List",
  "argument_list",
  "executable",
  "submit_arguments",
  "Submit_arguments",
  "cookie",
  "jobdir",
  "Shell_Path_List",
  "Mail_Users",
]);

/** Returns a store's rows without the data that are not saved. */
export function savedRows(rows: Loaded): Loaded {
  const strip = (data: { readonly [name: string]: unknown }): { readonly [name: string]: unknown } =>
    Object.fromEntries(Object.entries(data).filter(([name]) => !LEFT_OUT.has(name)));
  return { ...rows, objects: { ...rows.objects, hooks: [] }, jobs: rows.jobs.map((row) => ({ ...row, data: strip(row.data) })) };
}

/** Parses the text of a file. Throws StateError. */
export function parseState(text: string): SavedState {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new StateError("it is no JSON text");
  }
  const state = value as Partial<SavedState> | null;
  if (state?.format !== STATE_FORMAT) throw new StateError("it was not written by partita sim --save");
  if (state.version !== STATE_VERSION) throw new StateError(`it has version ${state.version}, this release reads version ${STATE_VERSION}`);
  if (typeof state.saved_s !== "number" || typeof state.server !== "string" || state.rows === undefined || state.scheds === undefined)
    throw new StateError("something is missing in it");
  return state as SavedState;
}

/** Returns the server's state. Each call returns a new one. A file of an earlier release has no rows of kinds of objects that are newer. */
export function stateOf({ server, rows }: SavedState): ServerState {
  const copy = JSON.parse(JSON.stringify(rows)) as Loaded;
  const objects = { ...NO_OBJECTS, ...copy.objects };
  return stateOfRows(server, { ...copy, objects, jobs: copy.jobs.map((row) => ({ ...row, data: sharedAttrs(row.data as JobAttrs) })) }, 0);
}

const NO_OBJECTS: Loaded["objects"] = {
  server: [],
  resources: [],
  queues: [],
  vnodes: [],
  scheds: [],
  resvs: [],
  hooks: [],
  run_times: [],
  backends: [],
  runners: [],
};

/** A change of a line of sched_config: `strict_ordering=True` for all schedulers, or `s1:strict_ordering=True` for one. parseConfigChange throws StateError. */
export type ConfigChange = { readonly sched: string | null; readonly line: string };
export function parseConfigChange(text: string): ConfigChange {
  const [, sched, key, value] = /^(?:([A-Za-z0-9][A-Za-z0-9._-]*):)?([A-Za-z_][\w.-]*)=(.*)$/.exec(text) ?? [];
  if (key === undefined) throw new StateError(`${text}: not [SCHEDULER:]KEY=VALUE`);
  return { sched: sched ?? null, line: `${key}: ${value}` };
}

const NO_TEXTS: SettingsTexts = { sched_config: null, dedicated_time: null, resource_group: null, holidays: null };

/**
 * Returns the settings of a scheduler with lines added to its sched_config. If a name has several lines, the last one
 * counts; for a key with a list (job_sort_key, ...) the given lines replace all others. Throws StateError if a given line is
 * wrong.
 */
export function settingsWith(saved: SavedState, sched: string, changes: readonly ConfigChange[], local: LocalTime): Settings {
  const texts = saved.scheds[sched] ?? NO_TEXTS;
  const lines = changes.filter((change) => change.sched === null || change.sched === sched).map(({ line }) => line);
  const given = new Set(lines.map(nameOfLine));
  const own = (texts.sched_config ?? "").split("\n").filter((line) => !given.has(nameOfLine(line)));
  const before = new Set(settingsOf({ ...texts, sched_config: own.join("\n") }, local).messages.map(({ text }) => text));
  const settings = settingsOf({ ...texts, sched_config: [...own, ...lines].join("\n") }, local);
  for (const { object, text } of settings.messages)
    if (lines.length > 0 && object === "sched_config" && !before.has(text))
      throw new StateError(`sched_config of ${sched}: ${text.replace(/^Error reading line \d+: /, "")}`);
  return settings;
}

const nameOfLine = (line: string): string => /^\s*([^\s:#]+)\s*:/.exec(line)?.[1] ?? "";
