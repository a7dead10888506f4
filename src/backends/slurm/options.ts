// Reads the attributes of a backend object of type slurm. Pure.

import { parseBackendOptions } from "#model/request/backend-options.ts";
import { type BackendSettings, flagSetting, numberSetting, textSetting, timeoutOf } from "../contract/settings.ts";

export type SlurmOptions = {
  readonly bin: string | null;
  /** SLURM_CONF */
  readonly config: string | null;
  readonly cluster: string | null;
  readonly name_prefix: string;
  readonly partition: string | null;
  readonly account: string | null;
  readonly output_dir: string | null;
  readonly timeout_ms: number;
  readonly use_nice: boolean;
  /** null: the value in slurm.conf */
  readonly time_origin_s: number | null;
  readonly nice_factor: number | null;
  /** options for every runner */
  readonly options: Readonly<Record<string, string>>;
};

export function slurmOptions({ attributes }: BackendSettings): SlurmOptions {
  const origin = textSetting(attributes, "time_origin");
  return {
    bin: textSetting(attributes, "bin"),
    config: textSetting(attributes, "config"),
    cluster: textSetting(attributes, "cluster"),
    name_prefix: textSetting(attributes, "repo_key") ?? "",
    partition: textSetting(attributes, "remote_queue"),
    account: textSetting(attributes, "account"),
    output_dir: textSetting(attributes, "output_dir"),
    timeout_ms: timeoutOf(attributes),
    use_nice: flagSetting(attributes, "use_nice"),
    time_origin_s: origin === null ? null : originOf(origin),
    nice_factor: numberSetting(attributes, "nice_factor"),
    options: parseBackendOptions("slurm", textSetting(attributes, "backend_opts") ?? ""),
  };
}

/** 2023-01-01 00:00:00 UTC: the origin if nobody names one. */
const DEFAULT_ORIGIN_S = 1_672_531_200;
const DATE = /^(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d)(?::(\d\d))?(?: ?([+-])(\d\d):(\d\d))?$/;

/** Reads a date `YYYY-MM-DD HH:MM[:SS][ +HH:MM]`; without an offset it is in UTC. null: no date. */
export function originOf(text: string): number | null {
  const match = DATE.exec(text.trim());
  if (match === null) return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map((part) => Number(part ?? 0));
  const [, , , , , , , sign, offset_h = "0", offset_min = "0"] = match;
  if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 59) return null;
  const offset_s = (Number(offset_h) * 60 + Number(offset_min)) * 60 * (sign === "-" ? -1 : 1);
  return daysOf(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset_s;
}

/** Days from 1970-01-01 to a date of the Gregorian calendar. */
function daysOf(year: number, month: number, day: number): number {
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const ofEra = shifted - era * 400;
  const ofYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  return era * 146_097 + ofEra * 365 + Math.floor(ofEra / 4) - Math.floor(ofEra / 100) + ofYear - 719_468;
}

/** Returns the origin and factor of nice values: the attributes, otherwise PriorityParameters of slurm.conf, otherwise the usual values. */
export function niceScale(
  options: Pick<SlurmOptions, "time_origin_s" | "nice_factor">,
  priorityParameters: string,
): { readonly origin_s: number; readonly factor: number } {
  const parameters = new Map(
    priorityParameters.split(",").map((each) => [each.slice(0, each.indexOf("=")).trim(), each.slice(each.indexOf("=") + 1)]),
  );
  const factor = Number(parameters.get("nice_factor") ?? Number.NaN);
  return {
    origin_s: options.time_origin_s ?? originOf(parameters.get("time_origin") ?? "") ?? DEFAULT_ORIGIN_S,
    factor: options.nice_factor ?? (factor > 0 ? factor : 1),
  };
}
