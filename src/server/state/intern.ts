// Keeps one copy of each value that many jobs have: texts such as the owner, resource records, environment lists. Ten
// thousand jobs of one user differ only in a name, two paths and a few numbers. If they share all other values, this saves
// most of the memory of a queued job (docs/bench.md).
//
// I1. An interned value is never changed in place (state.ts I3).

/**
 * The largest total length of the keys that are kept. When it is exceeded, the tables are emptied: jobs that share values
 * still share them, but new jobs do not share these old values.
 */
const KEYS_LENGTH_MAX = 16_000_000;
/** The longest key that is kept. A longer value probably belongs to one job only. */
const KEY_LENGTH_MAX = 20_000;

let keys_length = 0;

const strings = new Map<string, string>();
const objects = new Map<string, object>();
/** the last value that was returned, by attribute */
const latest = new Map<string, object>();
const latest_texts = new Map<string, string>();

/** Attributes for which many jobs have the same value. Ids, paths and times are not among them. */
// biome-ignore format: a list
const SHARED: ReadonlySet<string> = new Set([
  "Job_Name", "Job_Owner", "job_state", "queue", "server", "Account_Name", "Checkpoint", "Hold_Types", "Join_Path", "Keep_Files", "Mail_Points", "Mail_Users",
  "Remove_Files", "Resource_List", "schedselect", "Shell_Path_List", "sandbox", "User_List", "group_list", "Variable_List", "euser", "egroup", "queue_type",
  "project", "Submit_arguments", "Submit_Host", "executable", "argument_list", "comment", "jobdir", "resources_used", "estimated",
]);
/** How the comments of running jobs begin. They name the job's own vnodes, so they are not shared. */
const OWN_COMMENT = "Job ";

/** The value to store for an attribute of a job: an equal value that other jobs already have, otherwise the given value. */
export function shared(name: string, value: unknown): unknown {
  if (!SHARED.has(name)) return value;
  if (typeof value === "string") {
    if (name === "comment" && value.startsWith(OWN_COMMENT)) return value;
    const last = latest_texts.get(name);
    if (last === value) return last;
    const kept = sharedString(value);
    latest_texts.set(name, kept);
    return kept;
  }
  if (typeof value !== "object" || value === null) return value;
  // Jobs that follow one another mostly have the same values. To compare with the last value is cheaper than to make the key.
  const last = latest.get(name);
  if (last !== undefined && isAlike(last, value)) return last;
  const kept = sharedObject(value);
  latest.set(name, kept);
  return kept;
}

/** A new record with these attributes, whose values are shared with other jobs. */
export function sharedAttrs<A extends { readonly [name: string]: unknown }>(attrs: A): A {
  const copy: { [name: string]: unknown } = { ...attrs };
  for (const name in copy) copy[name] = shared(name, copy[name]);
  return copy as A;
}

function sharedObject(value: object): object {
  const key = JSON.stringify(value);
  if (key.length > KEY_LENGTH_MAX) return value;
  const found = objects.get(key);
  if (found !== undefined) return found;
  makeRoom(key.length);
  const kept = Array.isArray(value) ? value.map((item) => (typeof item === "string" ? sharedString(item) : item)) : value;
  objects.set(key, kept);
  return kept;
}

function sharedString(value: string): string {
  if (value.length > KEY_LENGTH_MAX) return value;
  const found = strings.get(value);
  if (found !== undefined) return found;
  makeRoom(value.length);
  strings.set(value, value);
  return value;
}

function makeRoom(length: number): void {
  keys_length += length;
  if (keys_length <= KEYS_LENGTH_MAX) return;
  strings.clear();
  objects.clear();
  keys_length = length;
}

/** Whether two values have the same elements, or the same names with the same plain values in the same order. */
function isAlike(a: object, b: object): boolean {
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, at) => item === b[at]);
  }
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return false;
  const [left, right] = [a as { [name: string]: unknown }, b as { [name: string]: unknown }];
  let at = 0;
  for (const name in b) if (name !== names[at++] || left[name] !== right[name]) return false;
  return true;
}
