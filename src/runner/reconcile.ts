// Compares the runners that the server has recorded with those that a backend shows. Pure.
//
// R1. A recorded runner that the backend does not show any more is gone, unless it is connected or its order is just being submitted.
// R2. A runner that the backend shows and the server has not recorded is cancelled, but only after LEAVE_MS: before that, the runner may be leaving, or the server's
//     picture may be older than the backend's list.
// R3. A tag is released if the server has recorded no runner of it and the backend shows no living one.

import type { RunnerSighting } from "#backends/contract/backend.ts";
import type { RunnerWork } from "#protocol/runner-link.ts";

export const LEAVE_MS = 30_000;

export type ReconcileInput = {
  readonly runners: readonly RunnerWork[];
  readonly sightings: readonly RunnerSighting[];
  readonly tagOf: (serial: number) => string;
  /** tags of orders that are being submitted */
  readonly submitting: ReadonlySet<string>;
  /** tags that this process knows of */
  readonly known_tags: ReadonlySet<string>;
  /** since when a living runner has been seen without a record, by `tag index` */
  readonly strangers: ReadonlyMap<string, number>;
  readonly now_ms: number;
};

export type Reconciled = {
  /** preempted: the backend ended the runner, or its node failed: its jobs have not failed */
  readonly gone: readonly { readonly name: string; readonly why: string; readonly preempted?: true }[];
  readonly remotes: { readonly [name: string]: string };
  readonly cancel: readonly RunnerSighting[];
  readonly release: readonly string[];
  readonly strangers: ReadonlyMap<string, number>;
  /** what the backend says about a runner that waits, by the name of the runner */
  readonly reasons: { readonly [name: string]: string };
  /** the living sightings of recorded runners, by name */
  readonly seen: ReadonlyMap<string, RunnerSighting>;
};

const placeOf = (tag: string, index: number): string => `${tag} ${index}`;

export function reconcile(input: ReconcileInput): Reconciled {
  const { runners, sightings, tagOf, submitting, known_tags, now_ms } = input;
  const living = new Map(sightings.filter(({ state }) => state !== "ended").map((each) => [placeOf(each.tag, each.index), each]));
  const ended = new Map(sightings.filter(({ state }) => state === "ended").map((each) => [placeOf(each.tag, each.index), each]));
  const recorded = new Set(runners.map(({ serial, index }) => placeOf(tagOf(serial), index)));
  const recorded_tags = new Set(runners.map(({ serial }) => tagOf(serial)));
  const gone: { name: string; why: string; preempted?: true }[] = [];
  const remotes: { [name: string]: string } = {};
  const reasons: { [name: string]: string } = {};
  const seen = new Map<string, RunnerSighting>();
  for (const runner of runners) {
    const tag = tagOf(runner.serial);
    const place = placeOf(tag, runner.index);
    const sighting = living.get(place);
    if (sighting !== undefined) {
      seen.set(runner.name, sighting);
      if (sighting.id !== runner.remote) remotes[runner.name] = sighting.id;
      const reason = sighting.fault?.text ?? sighting.reason;
      if (reason !== "") reasons[runner.name] = reason;
    } else if (!submitting.has(tag) && (runner.doing === "asked" || runner.away === true || runner.doing === "lost")) {
      const end = ended.get(place);
      gone.push({ name: runner.name, why: whyGone(end), ...(end?.ending === "retry" ? { preempted: true as const } : {}) });
    }
  }
  const strangers = new Map<string, number>();
  const cancel: RunnerSighting[] = [];
  for (const [place, sighting] of living) {
    if (recorded.has(place) || submitting.has(sighting.tag)) continue;
    const since_ms = input.strangers.get(place) ?? now_ms;
    strangers.set(place, since_ms);
    if (now_ms - since_ms >= LEAVE_MS) cancel.push(sighting);
  }
  const living_tags = new Set([...living.values()].map(({ tag }) => tag));
  const tags = new Set([...known_tags, ...sightings.map(({ tag }) => tag)]);
  const release = [...tags].filter((tag) => !recorded_tags.has(tag) && !living_tags.has(tag) && !submitting.has(tag));
  return { gone, remotes, cancel, release, strangers, reasons, seen };
}

function whyGone(ended: RunnerSighting | undefined): string {
  if (ended === undefined) return "the backend does not show it";
  const how = { done: "it has ended", retry: "it was preempted or lost", error: "it failed" }[ended.ending ?? "done"];
  return ended.reason === "" ? how : `${how}: ${ended.reason}`;
}
