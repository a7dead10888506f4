// Computes and checks alterations of a reservation's times and chunks (docs/reference/commands.md 5, pbs_ralter).

import { PBSE, reject } from "#model/pbse.ts";
import { parseSelect, type SelectChunk } from "#model/request/select.ts";
import { isBegun } from "../state/resv-holding.ts";
import type { Resv } from "../state/state.ts";
import type { Times } from "./submission.ts";

/** The requested new times. undefined: not requested. */
export type Asked = { readonly start: unknown; readonly end: unknown; readonly duration: unknown };

/**
 * The times of the present occurrence after an alteration, including the time for cleaning up; null: they do not change. If
 * only the start is new, the end stays; if only the duration is new, the start stays. Refuses with 15086 times in the past
 * and contradictions, with 15178 another start while a running reservation has jobs, with 15179 times that reach into the
 * next occurrence.
 */
export function alteredTimes(resv: Resv, asked: Asked, now_s: number, jobs: number): Times | null {
  const { reserve_start, reserve_end: last_s, reserve_index, standing, post_processing: post_s = 0 } = resv.attrs;
  if (reserve_start === undefined || last_s === undefined) return null;
  // Users give times without the time for cleaning up, which is added at the end.
  const reserve_end = last_s - post_s;
  const [start, end, duration] = [asked.start, asked.end, asked.duration] as (number | undefined)[];
  const start_s = start ?? (end !== undefined && duration !== undefined ? end - duration : reserve_start);
  const end_s = end ?? (duration === undefined ? reserve_end : start_s + duration);
  if (start_s === reserve_start && end_s === reserve_end) return null;
  if (end_s <= start_s || end_s <= now_s || (duration !== undefined && end_s - start_s !== duration)) throw reject(PBSE.BADTSPEC);
  if (start_s !== reserve_start) {
    if (isBegun(resv) && jobs > 0) throw reject(PBSE.RESV_NOT_EMPTY);
    if (start_s < now_s) throw reject(PBSE.BADTSPEC);
  }
  const next_s = standing === undefined ? undefined : resv.starts[reserve_index ?? 1];
  if (next_s !== undefined && end_s + post_s > next_s) throw reject(PBSE.STDG_RESV_OCCR_CONFLICT);
  return { start_s, end_s: end_s + post_s, duration_s: end_s + post_s - start_s };
}

/** Refuses with 15183 a new select with chunks that the old one does not have. Chunks may be removed, but not changed or added. */
export function checkSubset(old_text: string, new_text: string): void {
  const left = countsOf(parseSelect(old_text).chunks);
  for (const [chunk, count] of countsOf(parseSelect(new_text).chunks))
    if (count > (left.get(chunk) ?? 0)) throw reject(PBSE.SELECT_NOT_SUBSET);
}

function countsOf(chunks: readonly SelectChunk[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { count, pairs } of chunks) {
    const key = pairs
      .map(({ name, text }) => `${name}=${text}`)
      .sort()
      .join(":");
    counts.set(key, (counts.get(key) ?? 0) + (count ?? 1));
  }
  return counts;
}
