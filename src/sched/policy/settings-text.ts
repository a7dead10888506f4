// The files of a sched_priv (docs/reference/scheduler.md 11, 12): converts their texts to the input of a cycle and collects their mistakes
// for the log. Pure.

import { parseResourceGroup } from "#model/resource-group.ts";
import { parseDedicatedTime } from "../shapes/dedicated-time.ts";
import { ALWAYS_PRIME, parseHolidays } from "../shapes/holidays.ts";
import type { LocalTime } from "../shapes/local-time.ts";
import type { PolicyBook } from "../shapes/policy-book.ts";
import { messageText, parseSchedConfig, type SchedConfig } from "./sched-config.ts";

/** The texts of the files; null: the file does not exist. */
export type SettingsTexts = {
  readonly sched_config: string | null;
  readonly dedicated_time: string | null;
  readonly resource_group: string | null;
  readonly holidays: string | null;
};
/** A line for the log, class Fil. object: the name of the file. */
export type SettingsMessage = { readonly object: string; readonly text: string };
/** What the files say. book: the policy without the site's own modules, which must be loaded first. */
export type Settings = {
  readonly book: PolicyBook;
  readonly chain: Pick<
    SchedConfig,
    "modules" | "site_modules" | "wrong_modules" | "module_options" | "module_alarm_s" | "module_work_alarm_s"
  >;
  readonly messages: readonly SettingsMessage[];
};

/** Converts the texts to settings. Never throws: a missing file counts as empty. */
export function settingsOf(texts: SettingsTexts, local: LocalTime): Settings {
  const messages: SettingsMessage[] = [];
  const config = parseSchedConfig(texts.sched_config ?? "");
  for (const message of config.messages) messages.push({ object: "sched_config", text: messageText(message) });
  const dedicated = parseDedicatedTime(texts.dedicated_time ?? "", local);
  for (const { line } of dedicated.messages) messages.push({ object: "dedicated_time", text: `Error on line ${line}.` });
  const groups = parseResourceGroup(texts.resource_group ?? "", config.config.unknown_shares);
  for (const { line, text } of groups.messages) {
    if (text !== "") messages.push({ object: "resource_group", text });
    messages.push({ object: "resource_group", text: `resgroup: error on line ${line}.` });
  }
  if (groups.messages.length > 0)
    messages.push({ object: "resource_group", text: "Warning: resource group file error, fair share will not work" });
  const { prime, non_prime, modules, site_modules, wrong_modules, module_options, module_alarm_s, module_work_alarm_s, dyn_res } =
    config.config;
  const holidays = holidaysOf(texts.holidays, messages);
  return {
    book: { prime, non_prime, modules, module_options, holidays, dedicated: dedicated.times, fairshare: groups.tree, dyn_res, local },
    chain: { modules, site_modules, wrong_modules, module_options, module_alarm_s, module_work_alarm_s },
    messages,
  };
}

function holidaysOf(text: string | null, messages: SettingsMessage[]): PolicyBook["holidays"] {
  if (text === null) {
    messages.push({ object: "holidays", text: "Warning: cannot open holidays file; assuming 24hr primetime" });
    return ALWAYS_PRIME;
  }
  const { holidays, messages: wrong } = parseHolidays(text);
  for (const { line, text: fault } of wrong)
    messages.push({ object: "holidays", text: `Error on line ${line}: ${fault}; 24hr primetime assumed where it says nothing` });
  return holidays;
}
