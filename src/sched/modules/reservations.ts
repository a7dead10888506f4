// Module `reservations`: before any job is tried, answers what the server has asked about reservations. If a reservation was
// confirmed, the cycle ends and another one follows (docs/reference/scheduler.md 3 and 9). The promised vnodes are in the
// calendar. The promised resources of the server are checked here.
//
// R6. Alterations are answered first, then the other requests from the oldest to the newest. Vnodes that were given to one
//     reservation are not given to another for the same time in the same cycle.
// R7. Top jobs keep their published vnodes: no reservation gets them for the same time.

import type { ResvAsk } from "#protocol/sched-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { book, unbook } from "../calendar/calendar.ts";
import { windowAt } from "../calendar/start-search.ts";
import type { Answer, Asking } from "../resv/confirm-resv.ts";
import { answerAsk } from "../resv/confirm-resv.ts";
import { bookAnswer } from "../resv/resv-calendar.ts";
import { leavesServerShare } from "../resv/server-share.ts";
import { durationsOf } from "../shapes/durations.ts";
import { ctimeText } from "../shapes/local-time.ts";
import type { Cycle, PolicyModule } from "../shapes/module.ts";
import { logText } from "../shapes/reasons.ts";
import type { ResvInfo } from "../shapes/reservation.ts";
import { readHolding } from "../shapes/running.ts";

export const reservations: PolicyModule = {
  name: "reservations",
  begin(cycle) {
    const asked = cycle.qrun ? [] : questions(cycle);
    if (asked.length === 0) return undefined;
    const booked = bookTopJobs(cycle, asked);
    const dedicated = cycle.policy.resv_confirm_ignore === "dedicated_time" ? [] : cycle.book.dedicated;
    const asking: Asking = { universe: cycle.universe, now_s: cycle.now_s, dedicated };
    let confirmed = false;
    for (const { resv, ask } of asked) {
      const answer = answerAsk(asking, resv, ask);
      tell(cycle, resv, ask, answer);
      if (answer.kind === "deny") continue;
      confirmed = true;
      booked.push(...bookAnswer(cycle.universe, resv, answer.occurrences));
    }
    for (const id of booked) unbook(cycle.universe, id);
    return confirmed ? "leave" : undefined;
  },
  checks: [
    {
      stage: "calendar",
      check({ universe, now_s, server_taken }, candidate) {
        if (universe.server_available.size === 0 || universe.resvs.size === 0) return null;
        const asked = { resources: candidate.entry.job.resources, window: windowAt(candidate, now_s), taken: server_taken };
        const left = leavesServerShare(universe, asked);
        return left ? null : { code: "RESERVATION_CONFLICT", module: "reservations" };
      },
    },
  ],
};

type Question = { readonly resv: ResvInfo; readonly ask: ResvAsk };

/** Returns the reservations about which the server has asked, in the order in which they are answered (R6). */
function questions({ universe }: Cycle): Question[] {
  const asked: Question[] = [];
  for (const resv of universe.resvs.values()) if (resv.ask !== undefined) asked.push({ resv, ask: resv.ask });
  const turn = ({ ask }: Question): number => (ask.kind === "alter" ? 0 : 1);
  return asked.sort((a, b) => turn(a) - turn(b) || a.ask.asked_s - b.ask.asked_s || sequence(a.resv) - sequence(b.resv));
}

/** Returns the number of a reservation: 12 for `R12.svr`. */
const sequence = ({ id }: ResvInfo): number => Number.parseInt(id.slice(1), 10);

/** Books the published places of top jobs (R7), except the place of a job that itself becomes a reservation. Returns the ids of the bookings. */
function bookTopJobs({ universe, now_s }: Cycle, asked: readonly Question[]): string[] {
  const own = new Set(asked.map(({ resv }) => resv.source.attrs["qmove"]));
  const booked: string[] = [];
  for (const job of universe.jobs.values()) {
    const { start_time, exec_vnode } = job.estimated ?? {};
    if (job.state !== "Q" || start_time === undefined || exec_vnode === undefined || own.has(job.id)) continue;
    const from_s = Math.max(start_time, now_s);
    const id = `published ${job.id}`;
    const { to_s, firm_to_s } = windowAt(durationsOf(universe, job), from_s);
    book(universe, { id, kind: "plan", from_s, to_s, firm_to_s, holding: readHolding(universe.space, exec_vnode) });
    booked.push(id);
  }
  return booked;
}

/** Returns whether jobs run in the reservation. A reservation with running jobs keeps its vnodes. */
function hasRunningJobs({ universe }: Cycle, { id }: ResvInfo): boolean {
  for (const { job } of universe.insiders.values()) if (job.resv === id) return true;
  return false;
}

function tell(cycle: Cycle, resv: ResvInfo, { kind }: ResvAsk, answer: Answer): void {
  const { id } = resv;
  const log = (text: string, event: number = LOG_EVENT.RESV): void => cycle.log({ event, class: "Resv", object: id, text });
  if (kind === "reconfirm") log("Reservation is in degraded mode");
  if (answer.kind === "deny") {
    if (kind === "reconfirm" && hasRunningJobs(cycle, resv)) log("PBS Failed to confirm resv: Reservation has running jobs in it");
    log(`${kind === "reconfirm" ? "Reservation Failed to Reconfirm" : "PBS Failed to confirm resv"}: ${logText(answer.why)}`);
    cycle.decide({ kind: "deny-resv", resv: id, why: answer.why });
    return;
  }
  const { partition, occurrences } = answer;
  log(`Confirming ${occurrences.length} Occurrences`);
  occurrences.forEach(({ start_s }, at) => {
    log(`Occurrence ${at + 1}/${occurrences.length},${ctimeText(cycle.book.local.civil(start_s))}`, LOG_EVENT.DEBUG2);
  });
  const places = [...new Set(occurrences.map(({ exec_vnode }) => exec_vnode))];
  const placed = occurrences.map(({ start_s, end_s, exec_vnode }) => ({ start_s, end_s, place: places.indexOf(exec_vnode) }));
  cycle.decide({ kind: "confirm-resv", resv: id, partition, occurrences: placed, places });
}
