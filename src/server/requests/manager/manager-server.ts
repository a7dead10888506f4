// qmgr set|unset server (docs/reference/attributes.md 2 and 10).

import { PBSE, reject } from "#model/pbse.ts";
import { SERVER_ATTRIBUTES } from "#model/tables/server-attributes.ts";
import type { ManagerRequest } from "#protocol/messages.ts";
import { type Changed, changeAttrs, delta, withValue } from "../../attributes/change.ts";
import { checkFormula } from "../../attributes/formula-rules.ts";
import { checkLimitStyles } from "../../attributes/limit-style.ts";
import { daemonName, logChanged, loggedTerms } from "../../attributes/manager-log.ts";
import { checkResourceNames } from "../../attributes/resource-names.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";

export function manageServer(tx: Transaction, request: ManagerRequest): Answer {
  const { verb, attrs } = request;
  if (verb === "create" || verb === "delete") throw reject(PBSE.IVALREQ);
  const { state } = tx;
  checkFormulaRight(tx, request);
  const asked = changeAttrs(state.server, attrs, { table: SERVER_ATTRIBUTES, resources: state.resources, who: tx.who });
  checkServer(tx, asked);
  const changed = withRetryTime(asked);
  logChanged(tx, { class: "Svr", object: daemonName(tx) }, verb, loggedTerms(asked));
  tx.apply({ kind: "server-changed", ...delta(changed) });
  return {};
}

function checkServer(tx: Transaction, changed: Changed): void {
  const { after, touched } = changed;
  const queue = after["default_queue"];
  if (touched.has("default_queue") && typeof queue === "string" && !tx.state.queues.has(queue)) throw reject(PBSE.UNKQUE);
  checkResourceNames(tx.state, changed);
  checkLicenses(changed);
  checkLimitStyles(tx.state, changed, null);
  checkFormula(
    changed,
    tx.state.resources,
    [...tx.state.scheds.values()].map(({ attrs }) => attrs),
  );
}

function checkLicenses({ after, touched }: Changed): void {
  const min = Number(after["pbs_license_min"] ?? 0);
  const max = Number(after["pbs_license_max"] ?? Number.POSITIVE_INFINITY);
  if (min <= max) return;
  if (touched.has("pbs_license_min")) throw reject(PBSE.LICENSE_MIN_BADVAL);
  if (touched.has("pbs_license_max")) throw reject(PBSE.LICENSE_MAX_BADVAL);
}

/** Refuses with 15011 a change of job_sort_formula by a manager who is not root (docs/reference/qmgr.md 5). */
function checkFormulaRight(tx: Transaction, { attrs }: ManagerRequest): void {
  const isAsked = attrs.some(({ name }) => name.toLowerCase() === "job_sort_formula");
  if (isAsked && tx.who.level === "manager" && !tx.who.root) throw reject(PBSE.INTERNAL);
}

/** Copies a new value of reserve_retry_init, which is the old name of reserve_retry_time, to reserve_retry_time. */
function withRetryTime(changed: Changed): Changed {
  if (!changed.touched.has("reserve_retry_init") || changed.touched.has("reserve_retry_time")) return changed;
  return withValue(changed, "reserve_retry_time", changed.after["reserve_retry_init"]);
}
