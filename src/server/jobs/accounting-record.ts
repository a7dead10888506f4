// Texts of accounting records (docs/reference/files.md 4). The items of a record have the documented order and are separated
// by one blank. Records Q and S end in a blank.

import type { ResourceValues } from "#model/attribute.ts";
import { textOf } from "#model/attribute-reader.ts";
import { renderDuration } from "#model/values/duration.ts";
import { renderResourceList } from "#model/values/resource-list.ts";
import type { Transaction } from "../engine/transaction.ts";
import { amountValue } from "../state/amounts.ts";
import { shownExecHost } from "../state/node-names.ts";
import type { Job, JobAttrs, Placement } from "../state/state.ts";
import { attrsAtStart } from "./start-attrs.ts";

type Resources = Transaction["state"]["resources"];

export function accountQueued(tx: Transaction, job: Job): void {
  tx.account({ type: "Q", id: job.id, text: `${jobRecord(tx, job.attrs, "Q")} ` });
}

export function accountStarted(tx: Transaction, job: Job): void {
  const assigned = assignedItems(tx.state.resources, tx.state.placements.get(job.id));
  tx.account({ type: "S", id: job.id, text: `${jobRecord(tx, job.attrs, "S")} ${assigned.map((item) => `${item} `).join("")}` });
}

/**
 * Writes record E (ended) or R (rerun), with the resources that the job had at its start. If the run had several phases,
 * record e of the last phase comes first. end_s: the time at which the run ended.
 */
export function accountEnded(tx: Transaction, type: "E" | "R", job: Job, end_s: number): void {
  if (job.attrs["exec_vnode_orig"] !== undefined) endRecord(tx, "e", job, job.attrs, end_s);
  endRecord(tx, type, job, attrsAtStart(job.attrs), end_s);
}

/**
 * Writes a record of a job that gives up vnodes. u: for the phase that has ended; c: for the phase that begins; s: for a job
 * that is started without some of its vnodes.
 */
export function accountPhase(tx: Transaction, type: "u" | "c" | "s", job: Job, at_s: number): void {
  if (type === "u") return endRecord(tx, type, job, job.attrs, at_s);
  const assigned = assignedItems(tx.state.resources, tx.state.placements.get(job.id));
  tx.account({ type, id: job.id, text: `${jobRecord(tx, job.attrs, "S")} ${assigned.map((item) => `${item} `).join("")}` });
}

function endRecord(tx: Transaction, type: string, job: Job, attrs: JobAttrs, end_s: number): void {
  const items = [jobRecord(tx, attrs, "E"), `session=${attrs.session_id ?? 0}`];
  if (typeof attrs["alt_id"] === "string") items.push(`alt_id=${attrs["alt_id"]}`);
  items.push(`end=${end_s}`, `Exit_status=${attrs.Exit_status ?? 0}`, ...usageItems(tx.state.resources, attrs));
  if (tx.state.server["eligible_time_enable"] === true) items.push(`eligible_time=${renderDuration(Number(attrs["eligible_time"] ?? 0))}`);
  items.push(`run_count=${attrs.run_count ?? 0}`);
  tx.account({ type, id: job.id, text: items.join(" ") });
}

export function accountDeleted(tx: Transaction, id: string): void {
  tx.account({ type: "D", id, text: `requestor=${tx.who.user}@${tx.who.host}` });
}

/** Writes record A: the server has aborted the job or reservation. text: the reason in short. */
export function accountAborted(tx: Transaction, id: string, text: string): void {
  tx.account({ type: "A", id, text });
}

/** Items such as `resources_used.cput=00:00:01`, in the order in which PBS prints resources. */
export function usageItems(resources: Resources, attrs: JobAttrs): string[] {
  return resourceItems(resources, "resources_used", attrs.resources_used ?? {});
}

/** The items of a record that come from the job's attributes; `start=` is one of them only after the job has started. */
function jobRecord(tx: Transaction, attrs: JobAttrs, type: "Q" | "S" | "E"): string {
  const items: string[] = [];
  const add = (name: string, value: unknown): void => {
    if (value !== undefined && value !== "") items.push(`${name}=${value}`);
  };
  const text = (name: string): string | undefined => textOf(attrs, name);
  if (text("gridname") !== undefined) add("gridname", JSON.stringify(text("gridname")));
  add("user", attrs.euser);
  add("group", attrs.egroup);
  if (text("Account_Name") !== undefined) add("account", `"${text("Account_Name")}"`);
  add("project", attrs.project.includes(" ") ? `"${attrs.project}"` : attrs.project);
  if (text("accounting_id") !== undefined) add("accounting_id", `"${text("accounting_id")}"`);
  add("jobname", attrs.Job_Name);
  add("queue", attrs.queue);
  if (text("reserve_ID") !== undefined) {
    const resv = tx.state.resvs.get(text("reserve_ID") as string);
    add("resvname", resv?.attrs["Reserve_Name"]);
    add("resvID", text("reserve_ID"));
  }
  add("ctime", attrs.ctime);
  add("qtime", attrs.qtime);
  items.push(`etime=${attrs.etime ?? 0}`);
  if (type === "Q") {
    if (attrs["depend"] !== undefined) add("depend", Array.isArray(attrs["depend"]) ? attrs["depend"].join(",") : attrs["depend"]);
  } else {
    items.push(`start=${attrs.stime ?? 0}`);
  }
  if (attrs["array"] === true) add("array_indices", text("array_indices_submitted"));
  else if (type !== "Q") {
    add("exec_host", attrs.exec_host === undefined ? undefined : shownExecHost(tx.state, attrs.exec_host));
    add("exec_vnode", attrs.exec_vnode);
  }
  items.push(...resourceItems(tx.state.resources, "Resource_List", attrs.Resource_List));
  return items.join(" ");
}

function assignedItems(resources: Resources, placement: Placement | undefined): string[] {
  const sums: { [resource: string]: number } = {};
  for (const { amounts } of placement?.vnodes.values() ?? []) {
    for (const [resource, amount] of amounts) sums[resource] = (sums[resource] ?? 0) + amount;
  }
  const values = Object.fromEntries(Object.entries(sums).map(([resource, sum]) => [resource, amountValue(resources.get(resource), sum)]));
  return resourceItems(resources, "resource_assigned", values);
}

function resourceItems(resources: Resources, attribute: string, record: ResourceValues): string[] {
  return Object.entries(renderResourceList(record, resources)).map(
    ([name, text]) => `${attribute}.${name}=${/\s/.test(text) ? `"${text}"` : text}`,
  );
}
