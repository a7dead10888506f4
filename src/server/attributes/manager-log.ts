// Logs requests of qmgr (docs/reference/qmgr.md 11, docs/reference/files.md 3.1): `created at request of u@h` or `attributes set:  at request of u@h`, then one
// line for each attribute.

import { parseBoolean } from "#model/values/boolean.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Transaction } from "../engine/transaction.ts";
import type { Changed } from "./change.ts";

/** The object of a log line, with its class. */
export type LogTarget = { readonly class: "Svr" | "Que" | "Node" | "Sched" | "Resc" | "Hook" | "Backend"; readonly object: string };
/** An attribute of a request, under the name that the table gives it. */
export type LoggedTerm = {
  readonly name: string;
  readonly resource?: string;
  readonly op: string;
  readonly value: string;
  readonly boolean: boolean;
};

/** The name of the server in its log. Lines of the classes Svr and Sched have it as their object. */
export const daemonName = (tx: Transaction): string => `Server@${tx.config.host}`;

export function logCreated(tx: Transaction, target: LogTarget, terms: readonly LoggedTerm[]): void {
  line(tx, target, `created at request of ${requestor(tx)}`);
  for (const term of terms) line(tx, target, `attributes set: ${termText(term)}`);
}

export function logDeleted(tx: Transaction, target: LogTarget): void {
  line(tx, target, `deleted at request of ${requestor(tx)}`);
}

/** Logs a change of attributes. hook: the hook that made the change, if there was one. */
export function logChanged(tx: Transaction, target: LogTarget, verb: "set" | "unset", terms: readonly LoggedTerm[], hook?: string): void {
  const by = hook === undefined ? "" : ` by ${hook}`;
  line(tx, target, `attributes ${verb}:  at request of ${requestor(tx)}`);
  for (const term of terms) line(tx, target, `attributes ${verb}: ${termText(term)}${by}`);
}

export function loggedTerms(changed: Pick<Changed, "terms">): LoggedTerm[] {
  return changed.terms.map(({ def, op }) => ({
    name: def.name,
    op: op.op,
    value: op.value,
    boolean: def.type === "boolean",
    ...(op.resource === undefined ? {} : { resource: op.resource }),
  }));
}

/** The text of an operation: the value as the user has typed it, but booleans as TRUE and FALSE. */
function termText({ name, resource, op, value, boolean }: LoggedTerm): string {
  const sign = op === "+=" ? "+" : op === "-=" ? "-" : "=";
  const flag = boolean ? parseBoolean(value) : null;
  return `${name}${resource === undefined ? "" : `.${resource}`} ${sign} ${flag === null ? value : flag ? "TRUE" : "FALSE"}`;
}

const requestor = ({ who }: Transaction): string => `${who.user}@${who.host}`;

function line(tx: Transaction, target: LogTarget, text: string): void {
  tx.log({ event: LOG_EVENT.ADMIN, class: target.class, object: target.object, text });
}
