// Writes the tables of queues and servers: qstat -Q, -q, -B (docs/reference/commands.md 2.3). Pure.

import type { WireAttrs } from "#protocol/messages.ts";
import { left, right, sizeColumn } from "../columns.ts";
import { counts, type Job, resource, scalar } from "./job-row.ts";

/** A queue or a server. Its attributes are read by the same functions as those of a job. */
export type Counted = Job;

export const QUEUE_ATTRIBUTES = ["max_running", "total_jobs", "enabled", "started", "state_count", "queue_type"];
export const LIMIT_ATTRIBUTES = ["resources_max", "max_running", "state_count", "enabled", "started"];
export const SERVER_ATTRIBUTES = ["max_running", "total_jobs", "state_count", "server_state"];

const STATES = ["Queued", "Running", "Held", "Waiting", "Transit", "Exiting"] as const;

export const QUEUE_HEADER =
  "Queue              Max   Tot Ena Str   Que   Run   Hld   Wat   Trn   Ext Type\n" +
  "---------------- ----- ----- --- --- ----- ----- ----- ----- ----- ----- ----\n";

export function queueRow(queue: Counted): string {
  const flag = (name: string): string => (scalar(queue, name) === "True" ? "yes" : "no").padStart(3);
  const numbers = `${number(scalar(queue, "max_running"))} ${number(scalar(queue, "total_jobs"))}`;
  return `${left(queue.id, 16)} ${numbers} ${flag("enabled")} ${flag("started")} ${stateCells(queue)} ${left(scalar(queue, "queue_type"), 4)}\n`;
}

export const SERVER_HEADER =
  "Server             Max   Tot   Que   Run   Hld   Wat   Trn   Ext Status\n" +
  "---------------- ----- ----- ----- ----- ----- ----- ----- ----- -----------\n";

export function serverRow(server: Counted): string {
  const numbers = `${number(scalar(server, "max_running"))} ${number(scalar(server, "total_jobs"))}`;
  return `${left(server.id, 16)} ${numbers} ${stateCells(server)} ${left(scalar(server, "server_state"), 10)}\n`;
}

function stateCells(object: Counted): string {
  const count = counts(scalar(object, "state_count"));
  return STATES.map((state) => right(String(count[state] ?? 0), 5)).join(" ");
}

const number = (text: string): string => right(text || "0", 5);

export function limitsHeader(server: string): string {
  return (
    `\nserver: ${server}\n\n` +
    "Queue            Memory CPU Time Walltime Node   Run   Que   Lm  State\n" +
    "---------------- ------ -------- -------- ---- ----- ----- ----  -----\n"
  );
}

export function limitsRow(queue: Counted, size: "short" | "G" | "M"): string {
  const limit = (name: string): string => resource(queue, "resources_max", name);
  const memory = limit("mem") === "" ? "  --  " : right(sizeColumn(limit("mem"), size), 6);
  const time = (name: string): string => (limit(name) === "" ? "   --   " : right(limit(name), 8));
  const nodes = limit("nodect") === "" ? " -- " : right(limit("nodect"), 4);
  const { running, waiting } = queueLoad(queue.attrs);
  const most = scalar(queue, "max_running");
  const state = `${scalar(queue, "enabled") === "True" ? "E" : "D"} ${scalar(queue, "started") === "True" ? "R" : "S"}`;
  const load = `${right(String(running), 5)} ${right(String(waiting), 5)}`;
  return `${left(queue.id, 16)} ${memory} ${time("cput")} ${time("walltime")} ${nodes} ${load} ${right(most || "--", 4)}   ${state}\n`;
}

/** Writes the sums below the table of -q. */
export function limitsFooter(queues: readonly Counted[]): string {
  let [running, waiting] = [0, 0];
  for (const queue of queues) {
    const load = queueLoad(queue.attrs);
    running += load.running;
    waiting += load.waiting;
  }
  const indent = " ".repeat(47);
  return `${indent}----- -----\n${indent}${right(String(running), 5)} ${right(String(waiting), 5)}\n`;
}

/** Returns how many jobs of a queue run and wait. The server already counts suspended jobs as running. */
function queueLoad(attrs: WireAttrs): { readonly running: number; readonly waiting: number } {
  const text = attrs["state_count"];
  const count = counts(typeof text === "string" ? text : "");
  const waiting = (count["Queued"] ?? 0) + (count["Held"] ?? 0) + (count["Waiting"] ?? 0);
  return { running: count["Running"] ?? 0, waiting };
}
