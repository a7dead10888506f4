// The alternate listing of jobs: -a -i -r -u -n -s -G -M -H -T (docs/reference/commands.md 2.2). Pure except for the local time
// zone.

import { entryTexts } from "#model/request/host-entry.ts";
import { nth } from "#support/assert.ts";
import { left, right, shortId, sizeColumn } from "../columns.ts";
import { dayName, monthName, two } from "../dates.ts";
import type { QstatOptions } from "./arguments.ts";
import { type Job, owner, resource, scalar } from "./job-row.ts";

const UNSET = " -- ";

export function alternateAttributes(options: QstatOptions): readonly string[] {
  const names = ["Job_Name", "Job_Owner", "resources_used", "job_state", "queue", "Resource_List", "session_id"];
  if (options.nodes) names.push("exec_host");
  if (options.comments) names.push("comment");
  if (options.estimates) names.push("estimated", "stime");
  return names;
}

/** Writes what comes before the rows: a blank line, the server with its comment, the titles of the columns. */
export function alternateHeader(server: string, comment: string, options: QstatOptions): string {
  const [est, elap] = options.estimates ? ["Est", "Start"] : ["", "Elap"];
  const indent = " ".repeat(options.wide ? 99 : 60);
  const over = options.estimates ? `${indent}               ${est}\n` : "";
  const titles = options.wide
    ? "Job ID                         Username        Queue           Jobname         SessID   NDS  TSK   Memory Time  S Time\n" +
      "------------------------------ --------------- --------------- --------------- -------- ---- ----- ------ ----- - -----\n"
    : "Job ID          Username Queue    Jobname    SessID NDS TSK Memory Time  S Time\n" +
      "--------------- -------- -------- ---------- ------ --- --- ------ ----- - -----\n";
  return `\n${server}: ${comment}\n${over}${indent}Req'd  Req'd   ${elap}\n${titles}`;
}

/** Writes a job's row, and the lines below it. */
export function alternateRow(job: Job, options: QstatOptions, now_ms: number): string {
  let text = options.wide ? wideRow(job, options, now_ms) : narrowRow(job, options, now_ms);
  if (options.nodes) text += below(nodeLine(scalar(job, "exec_host")), "   ", options.one_line);
  if (options.comments) text += below(commentLine(scalar(job, "comment"), options.wide), "   ", options.one_line, true);
  return `${text}\n`;
}

/** Writes a line below a row, indented. With -1 the line is appended to the row; there only a comment keeps its indentation. */
function below(line: string, indent: string, one_line: boolean, indented = false): string {
  if (!one_line) return `\n${indent}${line}`;
  return ` ${indented ? indent : ""}${line.replaceAll("\n   ", "")}`;
}

function narrowRow(job: Job, options: QstatOptions, now_ms: number): string {
  const { session, nodes, cpus, memory, asked, state, time } = cells(job, options, now_ms);
  const names = `${left(shortId(job.id), 15)} ${left(owner(job), 8)} ${left(scalar(job, "queue"), 8)} ${left(scalar(job, "Job_Name"), 10)}`;
  return `${names} ${right(session, 6)} ${right(nodes, 3)} ${right(cpus, 3)} ${right(memory, 6)} ${right(asked, 5)} ${state} ${right(time, 5)}`;
}

function wideRow(job: Job, options: QstatOptions, now_ms: number): string {
  const { session, nodes, cpus, memory, asked, state, time } = cells(job, options, now_ms);
  const names = `${left(job.id, 30)} ${left(owner(job), 15)} ${left(scalar(job, "queue"), 15)} ${left(scalar(job, "Job_Name"), 15)}`;
  return `${names} ${right(session, 8)} ${right(nodes, 4)} ${right(cpus, 5)} ${right(memory, 6)} ${right(asked, 5)} ${state} ${right(time, 5)}`;
}

type Cells = { readonly [name in "session" | "nodes" | "cpus" | "memory" | "asked" | "state" | "time"]: string };

function cells(job: Job, options: QstatOptions, now_ms: number): Cells {
  const memory = resource(job, "Resource_List", "mem");
  const asked_cpus = resource(job, "Resource_List", "ncpus");
  const asked_cput = resource(job, "Resource_List", "cput");
  const measure = asked_cput === "" ? "walltime" : "cput";
  const used = resource(job, "resources_used", measure);
  return {
    session: isOver(job) ? UNSET : scalar(job, "session_id") || UNSET,
    nodes: resource(job, "Resource_List", "nodect") || UNSET,
    cpus: asked_cpus === "0" ? UNSET : asked_cpus || UNSET,
    memory: memory === "" ? UNSET : sizeColumn(memory, options.size),
    asked: (asked_cput || resource(job, "Resource_List", "walltime") || UNSET).slice(0, 5),
    state: scalar(job, "job_state").slice(0, 1) || " ",
    time: options.estimates ? startColumn(job, now_ms) : (used || UNSET).slice(0, 5),
  };
}

const EXEC_WIDTH = 78;

/** Writes exec_host, with host names cut at their first dot. A line that would be too long is broken before a `+`. */
function nodeLine(exec_host: string): string {
  if (exec_host === "") return UNSET;
  const parts = entryTexts(exec_host).map(shortHost);
  let [text, column] = [nth(parts, 0), 3 + nth(parts, 0).length];
  for (const part of parts.slice(1)) {
    if (column + 1 + part.length > EXEC_WIDTH) {
      text += `\n   +${part}`;
      column = 4 + part.length;
    } else {
      text += `+${part}`;
      column += 1 + part.length;
    }
  }
  return text;
}

/** Cuts the host name at its first dot: `node1.example.org/0*2` -> `node1/0*2`. Addresses are not cut. */
function shortHost(part: string): string {
  const slash = part.indexOf("/");
  const host = slash < 0 ? part : part.slice(0, slash);
  if (/^[\d.]+$/.test(host) || host.includes(":")) return part;
  const dot = host.indexOf(".");
  return dot < 0 ? part : host.slice(0, dot) + (slash < 0 ? "" : part.slice(slash));
}

function commentLine(comment: string, wide: boolean): string {
  if (comment === "") return UNSET;
  const line = comment.replaceAll("\n", " ");
  const width_max = wide ? 114 : 74;
  return line.length > width_max ? `${line.slice(0, width_max - 3)}...` : line;
}

const DAY_S = 86_400;

/** Writes the expected start of a waiting job, for -T. Jobs in other states, including running ones, have no expected start. */
function startColumn(job: Job, now_ms: number): string {
  if (!"QSB".includes(scalar(job, "job_state"))) return "--";
  const epoch_s = estimate(job);
  if (epoch_s === null) return "--";
  if (epoch_s === 0) return "?";
  const now_s = now_ms / 1000;
  if (epoch_s < now_s) return "--";
  const [date, now] = [new Date(epoch_s * 1000), new Date(now_ms)];
  if (date.toDateString() === now.toDateString()) return `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (epoch_s - now_s < 7 * DAY_S) return `${dayName(date).slice(0, 2)} ${two(date.getHours())}`;
  if (date.getFullYear() === now.getFullYear()) return monthName(date);
  if (date.getFullYear() - now.getFullYear() < 5) return String(date.getFullYear());
  return ">5yrs";
}

const isOver = (job: Job): boolean => "FMX".includes(scalar(job, "job_state"));

/** Returns the epoch seconds of a job's expected start; 0: the scheduler knows no start; null: there is no estimate. */
const estimate = (job: Job): number | null => epochOf(resource(job, "estimated", "start_time"));
const started = (job: Job): number | null => epochOf(scalar(job, "stime"));
const epochOf = (text: string): number | null => (/^\d+$/.test(text) ? Number(text) : null);

/**
 * Returns the order of -T. Jobs that have started come first, by their start. Then come jobs with an expected start in the future, by that start, and then all
 * other jobs. Jobs that are equal in this order keep the order of the listing.
 */
export function compareStarts(now_ms: number): (a: Job, b: Job) => number {
  const key = (job: Job): readonly [rank: number, epoch_s: number] => {
    const start_s = started(job);
    if (start_s !== null) return [0, start_s];
    const estimate_s = estimate(job);
    return estimate_s !== null && estimate_s >= now_ms / 1000 ? [1, estimate_s] : [2, 0];
  };
  return (a, b) => {
    const [x, y] = [key(a), key(b)];
    return x[0] - y[0] || x[1] - y[1];
  };
}
