// Writes an explanation (src/protocol/explanation.ts) for users: what the job requests, why it does not start now, what uses
// the resources that it needs, each kind of node, when the job could start, and how that estimate has changed. Pure, except
// that the machine's time zone is used.

import { ctime } from "#cli/dates.ts";
import { renderDuration } from "#model/values/duration.ts";
import type { Estimate, Explanation, NodeClass, Obstacle } from "#protocol/explanation.ts";
import { nth } from "#support/assert.ts";

const VERDICTS: { readonly [V in Explanation["verdict"]]: string } = {
  starts: "nothing stands in its way: the next cycle starts it",
  preempts: "other jobs make room: the next cycle starts it",
  waits: "it waits",
  never: "it can never run with what there is",
  held: "it is not offered to the scheduler",
  runs: "it runs",
};

/** Returns the explanation as lines; each ends with a newline. */
export function explanationText(told: Explanation): string {
  const lines = [
    `Job ${told.job} in queue ${told.queue} of ${told.sched === "" ? "no scheduler" : `scheduler ${told.sched}`}, state ${told.state}: ${VERDICTS[told.verdict]}`,
    row(
      "asks",
      `${told.select}, place ${told.place}, ${told.walltime_s === null ? "no walltime" : `walltime ${renderDuration(told.walltime_s)}`}`,
    ),
    ...(told.learned_s === undefined ? [] : [row("learned", `jobs of its user, project and name took ${learnedText(told.learned_s)}`)]),
    ...(told.why === null ? [] : [row("now", told.why.text)]),
    ...(told.remedy === undefined ? [] : [row("to mend", told.remedy)]),
    ...(told.comment === null || told.comment === told.why?.text ? [] : [row("comment", told.comment)]),
    ...keptLines(told),
    ...(told.resv === undefined ? [] : [row("reservation", `${told.resv.id}, ${ctime(told.resv.from_s)} - ${ctime(told.resv.to_s)}`)]),
    ...(told.preempts.length === 0 ? [] : [row("preempts", told.preempts.map((id) => id ?? "a job of another user").join(", "))]),
    ...(told.preempted_s === null ? [] : [row("preempted", `${ctime(told.preempted_s)}; it goes before other jobs of its level`)]),
    ...orderLines(told),
    ...runningLines(told),
    ...earliestLines(told),
  ];
  const sections = [
    section(
      "Everything in its way",
      told.reasons.length < 2 ? [] : told.reasons.map(({ stage, text }) => row(stage, text.replace(/^Not Running: /, ""))),
    ),
    section(
      "Who has vnodes that it could use",
      told.obstacles.map((obstacle) => obstacleText(obstacle)),
    ),
    section("Nodes by kind", told.nodes.length === 0 ? [] : nodeLines(told)),
    section("How the estimated start has moved", estimateLines(told.estimates)),
  ];
  return `${[...lines, ...sections.flat()].join("\n")}\n`;
}

const learnedText = (learned_s: number): string => renderDuration(Math.round(learned_s));
/** Returns how long similar jobs took. The explanation only shows this time; the scheduler computes starts with the expected end, which is shown before it. */
const likeIt = ({ learned_s }: Obstacle): string => (learned_s === undefined ? "" : ` (jobs like it took ${learnedText(learned_s)})`);

const row = (name: string, text: string): string => `  ${name.padEnd(17)} ${text}`;
const section = (title: string, lines: readonly string[]): string[] => (lines.length === 0 ? [] : ["", title, ...lines]);

const HOLDS: readonly (readonly [letter: string, whose: string])[] = [
  ["u", "its owner or an operator (qhold -h u)"],
  ["o", "an operator (qhold -h o)"],
  ["s", "the system or a manager (qhold -h s)"],
  ["p", "the server: its password is wrong"],
];

/** Returns the reasons for which the server does not pass the job to its scheduler. */
function keptLines({ kept }: Explanation): string[] {
  if (kept === undefined) return [];
  const { holds, until_s, after, on } = kept;
  // A job that waits for other jobs has a system hold because of that. It is not reported as a hold.
  const dependent = after.length > 0 || on > 0;
  const held = HOLDS.flatMap(([letter, whose]) =>
    holds.includes(letter) && !(letter === "s" && dependent) ? [row("held by", whose)] : [],
  );
  return [
    ...held,
    ...(until_s === null ? [] : [row("waits until", ctime(until_s))]),
    ...after.map(({ type, id, state }) => row("waits for", `${type}: job ${id}${state === undefined ? "" : `, state ${state}`}`)),
    ...(on === 0 ? [] : [row("waits for", `${on} job${on === 1 ? "" : "s"} to name it (depend=on)`)]),
  ];
}

function orderLines({ jobs_before, subjobs_before, top_job, verdict, reasons }: Explanation): string[] {
  if (verdict !== "waits" && verdict !== "starts" && verdict !== "preempts") return [];
  // If the queue is not started, or no scheduler serves the job, the job has no position in an order.
  if (jobs_before === null && reasons.some(({ stage }) => stage === "queue" || stage === "scheduler")) return [];
  const before = jobs_before === null ? "many" : String(jobs_before);
  const own = subjobs_before === undefined ? "" : `, ${subjobs_before} of its array`;
  return [
    row(
      "before it",
      `${before} waiting job${jobs_before === 1 ? "" : "s"}${own}${top_job ? "; it is a top job: its start is kept free" : ""}`,
    ),
  ];
}

function runningLines({ running }: Explanation): string[] {
  if (running === null) return [];
  const { since_s, end_s, exec_vnode } = running;
  const last_s = running.last_s === undefined ? end_s : running.last_s;
  return [
    row("on", exec_vnode),
    ...(since_s === null ? [] : [row("since", ctime(since_s))]),
    row("until", last_s === null ? "nobody knows: it has no walltime" : `${ctime(last_s)} at the latest`),
    ...(end_s === null || end_s === last_s ? [] : [row("expected end", `${ctime(end_s)} (soft_walltime)`)]),
  ];
}

function earliestLines({ earliest, at_s }: Explanation): string[] {
  if (earliest === null) return [];
  const { start_s, exec_vnode, after, why, late } = earliest;
  if (start_s === null) {
    const reason = late ? "not found in time" : why === null ? "none is known" : why.text.replace(/^[^:]*: /, "");
    return [row("earliest start", reason)];
  }
  const ends = after.map((one) => `${one.kind} ${one.id ?? "of another user"} ends ${ctime(one.to_s)}${likeIt(one)}`);
  return [
    row(
      "earliest start",
      `${ctime(start_s)}, ${start_s <= at_s + 1 ? "now" : `in ${renderDuration(start_s - at_s)}`}, on ${exec_vnode ?? "?"}`,
    ),
    ...ends.map((text, at) => row(at === 0 ? "after" : "", text)),
  ];
}

function obstacleText(obstacle: Obstacle): string {
  const { kind, id, from_s, to_s, vnodes } = obstacle;
  const when = kind === "job" ? `until ${ctime(to_s)}` : `${ctime(from_s)} - ${ctime(to_s)}`;
  return row(kind, `${id ?? "of another user"}, ${when}, ${vnodes} vnode${vnodes === 1 ? "" : "s"}${likeIt(obstacle)}`);
}

function nodeLines({ nodes, nodes_left_out, chunks }: Explanation): string[] {
  const several = chunks.length > 1;
  const heads = ["hosts", "such as", "have", "free", several ? "chunks fit now" : "fit now", "if empty", "why not"];
  const rows = nodes.map((node) => cells(node));
  const widths = heads.map((head, at) => Math.max(head.length, ...rows.map((cell) => nth(cell, at).length)));
  const line = (cell: readonly string[]): string =>
    `  ${cell.map((text, at) => (at === heads.length - 1 ? text : at === 0 ? text.padStart(nth(widths, at)) : text.padEnd(nth(widths, at)))).join("  ")}`.trimEnd();
  return [
    ...(several ? [`  chunks: ${chunks.join("   ")}`] : []),
    line(heads),
    ...rows.map(line),
    ...(nodes_left_out === 0 ? [] : [`  and ${nodes_left_out} more kinds`]),
  ];
}

function cells({ hosts, examples, has, free, copies_now, copies_empty, why }: NodeClass): string[] {
  const names = `${examples.join(",")}${hosts > examples.length ? ",..." : ""}`;
  return [
    String(hosts),
    names,
    has,
    free,
    copies_now.join("/"),
    copies_empty.join("/"),
    why === null ? "" : why.text.replace(/^[^:]*: /, ""),
  ];
}

function estimateLines(estimates: readonly Estimate[]): string[] {
  let before: number | null = null;
  return estimates.map(({ at_s, start_s }) => {
    const moved =
      before === null || start_s === null || start_s === before
        ? ""
        : `, ${renderDuration(Math.abs(start_s - before))} ${start_s < before ? "earlier" : "later"}`;
    before = start_s ?? before;
    return row(ctime(at_s).slice(4, 19), start_s === null ? "none" : `${ctime(start_s)}${moved}`);
  });
}
