// Server attributes that limit the work that one user can cause (docs/limits.md). OpenPBS has no such attributes. Therefore
// their rows follow the rows of OpenPBS in the server's table, and they are shown only when they are set.
//
// L1. Each limit has a value that applies while the attribute is unset. So there are limits even without any configuration.

import type { AttributeRow } from "../attribute.ts";
import { parseSize, sizeBytes } from "../values/size.ts";

/** Values that apply while the attribute is unset. Sizes count characters of text. */
const DEFAULTS = {
  max_user_connections: 1024,
  max_connection_requests: 4096,
  max_user_request_text: "32mb",
  max_unread_reply: "4mb",
  max_user_unread_reply: "32mb",
  max_user_request_rate: 20_000,
  max_host_connections: 1024,
  max_host_request_text: "64mb",
  max_host_unread_reply: "64mb",
  max_host_request_rate: 40_000,
  max_request_time: 30,
  max_reader_pause: 60,
  max_user_listings: 16,
  max_history_rows: 500,
  max_status_jobs: 1000,
  max_criteria_text: "64kb",
  max_user_questions: 32,
  max_depend_jobs: 1000,
  max_select_chunks: 10_000,
  max_job_chunks: 100_000,
  max_resource_text: "8kb",
  max_job_text: "4mb",
  max_user_job_text: "64mb",
  max_user_occurrences: 10_000,
  node_silence_timeout: 45,
  node_answer_timeout: 5,
  node_requeue_min: 10,
  sched_silence_timeout: 45,
} as const;

export type LimitName = keyof typeof DEFAULTS;

const row = (name: LimitName, help: string, min = 1): AttributeRow => {
  const assumed = DEFAULTS[name];
  return [name, typeof assumed === "number" ? "integer" : "size", "all", "mgr", help, { assumed, min }];
};

/** The smallest values that the limits on text can be set to. With these, a request of ordinary size is still accepted. */
const TEXT_MIN = 64 * 1024;
const RESOURCE_TEXT_MIN = 1024;
const CRITERIA_TEXT_MIN = 1024;
/** The smallest value of max_status_jobs. Commands name up to this number of jobs in one request. */
const STATUS_JOBS_MIN = 1000;

// biome-ignore format: one row per attribute
export const LIMIT_ROWS: readonly AttributeRow[] = [
  row("max_user_connections", "connections of one user to the server"),
  row("max_connection_requests", "requests of one connection that are not answered yet; more are not read"),
  row("max_user_request_text", "text of one user's requests that are incomplete or wait for their turn", TEXT_MIN),
  row("max_unread_reply", "text of replies that one connection has not read; its next requests wait", TEXT_MIN),
  row("max_user_unread_reply", "the same for all connections of one user together", TEXT_MIN),
  row("max_user_request_rate", "requests a second of one user; more wait"),
  row("max_host_connections", "connections of all users of one other host to the server"),
  row("max_host_request_text", "text of the requests of all users of one other host that are incomplete or wait for their turn", TEXT_MIN),
  row("max_host_unread_reply", "text of replies that the connections of all users of one other host have not read", TEXT_MIN),
  row("max_host_request_rate", "requests a second of all users of one other host; more wait"),
  row("max_request_time", "seconds in which a request must be complete once it has begun to arrive"),
  row("max_reader_pause", "seconds in which a client that has replies to read must read some"),
  row("max_user_listings", "listings of jobs in several parts that one user has under way; more wait"),
  row("max_history_rows", "finished jobs read from the store at once"),
  row("max_status_jobs", "jobs that one status request names; commands send several requests", STATUS_JOBS_MIN),
  row("max_criteria_text", "text of all criteria of one selection of jobs", CRITERIA_TEXT_MIN),
  row("max_user_questions", "questions of one user to schedulers that are not answered yet; more are refused"),
  row("max_depend_jobs", "jobs that one request for dependencies may name; up to 100 times as many may name one job"),
  row("max_select_chunks", "chunks in a select or nodes that are written down one by one"),
  row("max_job_chunks", "chunks of one job, counts included"),
  row("max_resource_text", "text of one resource that a job asks for, but for select and nodes", RESOURCE_TEXT_MIN),
  row("max_job_text", "text of the attributes of one job or reservation", TEXT_MIN),
  row("max_user_job_text", "text of the attributes of all jobs of one user that are not over", TEXT_MIN),
  row("max_user_occurrences", "reservations of one user that are not over, each occurrence of a standing one counted"),
  row("node_silence_timeout", "seconds without an answer of a mom until its vnodes are state-unknown; 0: moms are not asked", 0),
  row("node_answer_timeout", "seconds in which a mom of another host must answer when its reports are missing"),
  row("node_requeue_min", "seconds since the last message of a mom before its jobs may be started elsewhere; it ends them before", 2),
  row("sched_silence_timeout", "seconds without an answer of a scheduler until it counts as down; 0: schedulers are not asked", 0),
];

/** The present value of a limit: a number; for a size, a number of characters. */
export function limitOf({ server }: { readonly server: { readonly [name: string]: unknown } }, name: LimitName): number {
  const value = server[name] ?? DEFAULTS[name];
  if (typeof value === "number") return value;
  return value === DEFAULTS[name] ? DEFAULT_CHARS[name] : charsOf(String(value));
}

function charsOf(text: string): number {
  const size = parseSize(text);
  return size === null ? Number.POSITIVE_INFINITY : sizeBytes(size);
}

/** The default values as numbers. They are computed once, because every submission needs them. */
const DEFAULT_CHARS = Object.fromEntries(Object.entries(DEFAULTS).map(([name, value]) => [name, charsOf(String(value))])) as Readonly<
  Record<LimitName, number>
>;
