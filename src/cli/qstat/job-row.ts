// Reads a job's attributes for the tables. Pure.

import type { WireAttrs } from "#protocol/messages.ts";

export type Job = { readonly id: string; readonly attrs: WireAttrs };

/** Returns an attribute that has a single value; "": it is unset. */
export function scalar(job: Job, name: string): string {
  const value = job.attrs[name];
  return typeof value === "string" ? value : "";
}

/** Returns a resource of a resource list; "": it is unset. */
export function resource(job: Job, list: string, name: string): string {
  const value = job.attrs[list];
  if (typeof value !== "object" || Array.isArray(value)) return "";
  const amount = (value as { readonly [resource: string]: string | readonly string[] })[name];
  return typeof amount === "string" ? amount : "";
}

/** Returns the user part of Job_Owner, which is `user@host`. */
export function owner(job: Job): string {
  const text = scalar(job, "Job_Owner");
  const at = text.indexOf("@");
  return at < 0 ? text : text.slice(0, at);
}

/** Whether the job belongs to one of the users, given as `user` or `user@host`. */
export function isOwnedBy(job: Job, users: readonly string[]): boolean {
  const [user, host = ""] = scalar(job, "Job_Owner").split("@");
  return users.some((wanted) => {
    const [name, where] = wanted.split("@");
    return (
      name === user &&
      (where === undefined || where.toLowerCase() === host.toLowerCase() || host.toLowerCase().startsWith(`${where.toLowerCase()}.`))
    );
  });
}

/** Returns the seconds of a duration `[[HH:]MM:]SS`, or null if the text is not a duration. */
export function seconds(text: string): number | null {
  if (text === "") return null;
  let total = 0;
  for (const part of text.split(":")) {
    const number = Number(part);
    if (!Number.isFinite(number)) return null;
    total = total * 60 + number;
  }
  return total;
}

/** Parses the counts of state_count or array_state_count: `Queued:3 Running:0 ...`. */
export function counts(text: string): { readonly [state: string]: number } {
  const result: { [state: string]: number } = {};
  for (const part of text.split(" ")) {
    const colon = part.indexOf(":");
    if (colon > 0) result[part.slice(0, colon)] = Number(part.slice(colon + 1));
  }
  return result;
}
