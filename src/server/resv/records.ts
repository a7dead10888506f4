// Log lines, accounting records U Y B K k (docs/reference/files.md 4) and mail (docs/reference/scheduler.md 9) about reservations.

import type { ResourceValues } from "#model/attribute.ts";
import { renderResourceList } from "#model/values/resource-list.ts";
import type { Transaction } from "../engine/transaction.ts";
import type { Attrs, Resv, ResvAttrs, ServerState } from "../state/state.ts";

export function logResv(tx: Transaction, event: number, id: string, text: string): void {
  tx.log({ event, class: "Resv", object: id, text });
}

/** The requestor in the texts of records: `alice@host`, or `Server@host@host` for actions of the server itself. */
export function resvRequestor(tx: Transaction): string {
  return tx.token === 0 && tx.who.root ? serverRequestor(tx) : `${tx.who.user}@${tx.who.host}`;
}

const serverRequestor = ({ config }: Transaction): string => `Server@${config.host}@${config.host}`;

export function accountSubmitted(tx: Transaction, resv: Resv): void {
  const { interactive, reserve_rrule, reserve_timezone } = resv.attrs as ResvAttrs & { readonly [name: string]: unknown };
  const items = [`requestor=${resvRequestor(tx)}`];
  if (interactive !== undefined && interactive !== 0) items.push(`Interactive=${interactive}`);
  if (reserve_rrule !== undefined) items.push(`recurrence_rrule=${reserve_rrule}`, `timezone=${reserve_timezone}`);
  tx.account({ type: "U", id: resv.id, text: items.join(" ") });
}

export function accountConfirmed(tx: Transaction, resv: Resv, requestor: string): void {
  const { reserve_start, reserve_end, resv_nodes, reserve_count } = resv.attrs;
  const items = [`requestor=${requestor}`, `start=${reserve_start}`, `end=${reserve_end}`, `nodes=${resv_nodes ?? ""}`];
  if (resv.starts.length > 1) items.push(`count=${reserve_count}`);
  tx.account({ type: "Y", id: resv.id, text: items.join(" ") });
}

export function accountBegun(tx: Transaction, resv: Resv): void {
  const { attrs } = resv;
  const items: string[] = [`owner=${attrs.Reserve_Owner}`];
  const add = (name: string, value: unknown): void => {
    if (value !== undefined && value !== "") items.push(`${name}=${value}`);
  };
  add("name", attrs.Reserve_Name);
  add("account", (attrs as Attrs)["Account_Name"]);
  add("queue", attrs.queue);
  add("ctime", attrs.ctime);
  add("start", attrs.reserve_start);
  add("end", attrs.reserve_end);
  add("duration", attrs.reserve_duration);
  add("nodes", attrs.resv_nodes);
  add("Authorized_Users", attrs.Authorized_Users.join(","));
  for (const list of ["Authorized_Groups", "Authorized_Hosts"] as const) {
    const names = (attrs as Attrs)[list];
    if (Array.isArray(names)) add(list, names.join(","));
  }
  for (const [name, text] of Object.entries(resvResources(tx.state, attrs)))
    add(`Resource_List.${name}`, /\s/.test(text) ? `"${text}"` : text);
  tx.account({ type: "B", id: resv.id, text: items.map((item) => `${item} `).join("") });
}

/** Writes the record of a deletion: k if the owner deletes the reservation, else K. If schedulers have denied it, the server counts as the requestor. */
export function accountRemoved(tx: Transaction, resv: Resv): void {
  const requestor = tx.token === 0 ? serverRequestor(tx) : resvRequestor(tx);
  tx.account({ type: requestor === resv.attrs.Reserve_Owner ? "k" : "K", id: resv.id, text: `requestor=${requestor}` });
}

/** Resource_List for display, in the order of PBS, which sorts the list at an alteration. */
export function resvResources(state: Pick<ServerState, "resources">, attrs: ResvAttrs): { readonly [resource: string]: string } {
  const sorted = renderResourceList(attrs.Resource_List as ResourceValues, state.resources);
  if (attrs["resources_sorted"] === true) return sorted;
  const entries = Object.entries(sorted);
  const last = entries.filter(([name]) => LAST.includes(name)).sort(([a], [b]) => LAST.indexOf(a) - LAST.indexOf(b));
  return Object.fromEntries([...entries.filter(([name]) => !LAST.includes(name)), ...last]);
}

const LAST: readonly string[] = ["select", "place", "walltime"];
