// The dedicated_time file (docs/reference/scheduler.md 11): lines `MM/DD/YYYY HH:MM MM/DD/YYYY HH:MM` with the beginning and the end of a period. Pure: text
// and a local calendar are the input.

import type { FileMessage } from "./holidays.ts";
import type { LocalTime } from "./local-time.ts";

export type DedicatedTime = { readonly from_s: number; readonly to_s: number };

const LINE = /^(\d{1,2})\/(\d{1,2})\/(\d{4})\s+(\d{1,2}):(\d{2})\s+(\d{1,2})\/(\d{1,2})\/(\d{4})\s+(\d{1,2}):(\d{2})$/;

/** Returns the periods in the order of their beginning. Lines that cannot be read are reported with their numbers. */
export function parseDedicatedTime(
  text: string,
  local: LocalTime,
): { readonly times: readonly DedicatedTime[]; readonly messages: readonly FileMessage[] } {
  const times: DedicatedTime[] = [];
  const messages: FileMessage[] = [];
  text.split("\n").forEach((raw, at) => {
    const line = raw.trim();
    if (line === "" || line.startsWith("#") || line.startsWith("*")) return;
    const match = LINE.exec(line);
    const [from_s, to_s] = match === null ? [null, null] : [moment(match, 1, local), moment(match, 6, local)];
    if (from_s === null || to_s === null || to_s <= from_s) messages.push({ line: at + 1, text: line });
    else times.push({ from_s, to_s });
  });
  return { times: times.sort((a, b) => a.from_s - b.from_s), messages };
}

function moment(match: RegExpExecArray, at: number, local: LocalTime): number | null {
  const [month = 0, day = 0, year = 0, hour = 0, minute = 0] = match.slice(at, at + 5).map(Number);
  if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59) return null;
  return local.epoch(year, month, day, hour * 3600 + minute * 60);
}

/** Returns the present period of dedicated time; null: there is none. */
export function dedicatedNow(times: readonly DedicatedTime[], now_s: number): DedicatedTime | null {
  return times.find(({ from_s, to_s }) => from_s <= now_s && now_s < to_s) ?? null;
}
