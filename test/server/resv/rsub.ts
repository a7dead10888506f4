// Reservations on a test's server core: the request of pbs_rsub, the answer of a scheduler, the state of a reservation.

import assert from "node:assert/strict";
import { RESV_STATE_WORDS } from "#model/resv-state.ts";
import type { AttrValueText, Request } from "#protocol/messages.ts";
import type { SchedResv, ServerToSched, Verdict } from "#protocol/sched-link.ts";
import type { Peer } from "#server/engine/identity.ts";
import type { ResvAttrs } from "#server/state/state.ts";
import { ALICE, type Answer, ask, cycle, type Harness, START_S } from "../harness.ts";

/**
 * Attributes as words: `start=3600` and `end=` are seconds after START_S; `walltime=`, `select=` and others like them are
 * resources; all others are attributes by name.
 */
export function rsubRequest(words: string): Extract<Request, { kind: "submit-resv" }> {
  const attrs = words.split(" ").map((word): AttrValueText => {
    const equals = word.indexOf("=");
    const [name, value] = [word.slice(0, equals), word.slice(equals + 1)];
    if (name === "start" || name === "end") return { name: `reserve_${name}`, value: String(START_S + Number(value)) };
    return RESOURCES.has(name) ? { name: "Resource_List", resource: name, value } : { name, value };
  });
  return { kind: "submit-resv", attrs };
}
const RESOURCES = new Set(["select", "place", "walltime", "ncpus", "mem", "nosuch", "min_walltime"]);

/** The id of a reservation that must be accepted. */
export function rsub(h: Harness, words: string, who: Peer = ALICE): string {
  const answer = ask(h, who, rsubRequest(words));
  assert.equal(answer?.ok, true, `pbs_rsub ${words}: ${JSON.stringify(answer)}`);
  return wordOf(answer).split(" ")[0] ?? "";
}

/** `R1.svr CONFIRMED`, `15086 Bad time specification(s)`, `deferred`. */
export function wordOf(answer: Answer | undefined): string {
  if (answer === undefined) return "deferred";
  if (!answer.ok) return `${answer.code} ${answer.text}`;
  const { id, word } = answer.value as { readonly id: string; readonly word: string };
  return `${id} ${word}`;
}

export function resvAttrs(h: Harness, id: string): ResvAttrs {
  const resv = h.core.state.resvs.get(id);
  assert.ok(resv !== undefined, `no reservation ${id}`);
  return resv.attrs;
}

/** `CO 2`, `gone`. */
export function resvState(h: Harness, id: string): string {
  const attrs = h.core.state.resvs.get(id)?.attrs;
  return attrs === undefined ? "gone" : `${RESV_STATE_WORDS[attrs.reserve_state]?.[0]} ${attrs.reserve_substate}`;
}

/** A reservation in a scheduler's mirror, computed from the frames sent to the scheduler. */
export function mirrored(h: Harness, link: number, id: string): SchedResv | undefined {
  let found: SchedResv | undefined;
  for (const frame of h.to_scheds) {
    if (frame.link !== link) continue;
    if (frame.type === "sched-snapshot") found = (frame.data as ServerToSched["sched-snapshot"]).resvs.find((resv) => resv.id === id);
    if (frame.type !== "sched-delta") continue;
    for (const change of (frame.data as ServerToSched["sched-delta"]).changes) {
      if ("put" in change && change.put === "resv" && change.value.id === id) found = change.value;
      if ("drop" in change && change.drop === "resv" && change.id === id) found = undefined;
    }
  }
  return found;
}

/** A scheduler's cycle: every requested occurrence gets these vnodes; null: denied. */
export function answerResv(h: Harness, link: number, id: string, exec_vnode: string | null, partition = "pbs-default"): Verdict {
  const asked = mirrored(h, link, id)?.ask;
  assert.ok(asked !== undefined, `${id} is not asked of link ${link}`);
  const [verdict] = cycle(h, link, [
    exec_vnode === null
      ? { kind: "deny-resv", resv: id, why: { code: "INSUFFICIENT_RESOURCE", resource: "ncpus" } }
      : {
          kind: "confirm-resv",
          resv: id,
          partition,
          places: [exec_vnode],
          occurrences: asked.occurrences.map((each) => ({ ...each, place: 0 })),
        },
  ]);
  assert.ok(verdict !== undefined);
  return verdict;
}

/** pbs_ralter with words as in rsubRequest; `duration=` for -D, `force` for -W force. */
export function ralter(h: Harness, id: string, words: string, who: Peer = ALICE): string {
  const force = words.split(" ").includes("force");
  const rest = words
    .split(" ")
    .filter((word) => word !== "force" && word !== "")
    .join(" ")
    .replace(/\bduration=/, "reserve_duration=");
  const attrs = rest === "" ? [] : rsubRequest(rest).attrs;
  return wordOf(ask(h, who, { kind: "modify-resv", resv: id, attrs, ...(force ? { force } : {}) }));
}
