// Draws the requests about reservations: all kinds of reservations, alterations, deletions, jobs in reservations.
// Reservations are short, so that each ends before the complex must be at rest.

import type { AttrValueText, Request } from "#protocol/messages.ts";
import type { ServerState } from "#server/state/state.ts";
import type { Prng } from "#support/prng.ts";
import { HOST } from "./server-process.ts";

/** Draws a request of pbs_rsub. */
export function reservation(random: Prng, state: ServerState, partitions: readonly string[], now_ms: number): Request {
  const now_s = Math.floor(now_ms / 1000);
  const attrs: AttrValueText[] = [{ name: "Reserve_Name", value: "sim" }];
  const jobs = [...state.jobs.values()];
  const add = (name: string, value: string, resource?: string): void =>
    void attrs.push({ name, value, ...(resource === undefined ? {} : { resource }) });
  const kind = random.pick(["advance", "advance", "advance", "standing", "asap", "job", "hosts"]);
  if (kind === "job" || kind === "asap") {
    const wanted = jobs.filter(({ attrs: { job_state } }) => (kind === "job" ? job_state === "R" : "QH".includes(job_state)));
    const job = wanted.length === 0 ? `${random.int(1, 9)}.${HOST}` : random.pick(wanted).id;
    add(kind === "job" ? "reserve_job" : "qmove", job);
    if (kind === "asap") add("interactive", "-10");
    return { kind: "submit-resv", attrs };
  }
  const duration_s = kind === "standing" ? random.int(1, 60) : random.pick([1, 20, 300]);
  add("reserve_start", String(now_s + random.int(0, random.pick([5, 60, 300]))));
  add("Resource_List", String(duration_s), "walltime");
  if (random.chance(0.3)) add("interactive", String(random.pick([-5, 5, 60])));
  if (kind === "hosts")
    return { kind: "submit-resv", attrs: attrs.filter(({ name }) => name !== "interactive"), hosts: [hostOf(random, state)] };
  if (random.chance(0.8)) add("Resource_List", `${random.int(1, 2)}:ncpus=${random.int(1, 3)}`, "select");
  if (attrs.some(({ resource }) => resource === "select") && random.chance(0.4))
    add("Resource_List", `${random.pick(["free", "pack", "scatter"])}${random.pick(["", ":excl", ":shared", ":exclhost"])}`, "place");
  if (random.chance(0.2)) add("partition", random.pick(partitions));
  if (random.chance(0.2)) add("delete_idle_time", String(random.int(1, 60)));
  if (kind === "standing") {
    add("reserve_rrule", `FREQ=MINUTELY;INTERVAL=${random.int(1, 3)};COUNT=${random.int(1, 4)}`);
    add("reserve_timezone", "UTC");
  }
  return { kind: "submit-resv", attrs };
}

function hostOf(random: Prng, state: ServerState): string {
  const vnodes = [...state.vnodes.values()];
  if (vnodes.length === 0) return "nowhere";
  const resources = random.pick(vnodes).attrs["resources_available"] as { readonly host?: string } | undefined;
  return resources?.host ?? "nowhere";
}

/** Draws a request of pbs_ralter or pbs_rdel; null: there is no reservation. */
export function resvChange(random: Prng, state: ServerState, now_ms: number): Request | null {
  const resvs = [...state.resvs.values()];
  if (resvs.length === 0) return null;
  const { id } = random.pick(resvs);
  if (random.chance(0.2)) return { kind: "delete-resv", resv: id };
  const now_s = Math.floor(now_ms / 1000);
  const changes: readonly AttrValueText[] = [
    { name: "reserve_duration", value: String(random.pick([1, 30, 600])) },
    { name: "reserve_start", value: String(now_s + random.int(-5, 100)) },
    { name: "reserve_end", value: String(now_s + random.int(0, 400)) },
    { name: "Resource_List", resource: "select", value: `1:ncpus=${random.int(1, 3)}` },
    { name: "Reserve_Name", value: "renamed" },
    { name: "Authorized_Users", value: random.pick(["alice", "bob,carol", "-alice"]) },
  ];
  const attrs = changes.filter(() => random.chance(0.4));
  if (random.chance(0.3)) attrs.push({ name: "interactive", value: String(random.int(1, 30)) });
  return { kind: "modify-resv", resv: id, attrs, ...(random.chance(0.1) ? { force: true } : {}) };
}
