// qmgr create|delete|set|unset queue (docs/reference/attributes.md 4 and 10, docs/reference/qmgr.md 5).

import { checkObjectName, QUEUE_NAME_LENGTH_MAX } from "#model/object-names.ts";
import { PBSE, Reject, reject } from "#model/pbse.ts";
import { QUEUE_ATTRIBUTES } from "#model/tables/queue-attributes.ts";
import type { ManagerRequest } from "#protocol/messages.ts";
import { answerError, answerFailures } from "../../attributes/answers.ts";
import { type Changed, changeAttrs, delta, isUnset } from "../../attributes/change.ts";
import { checkLimitStyles } from "../../attributes/limit-style.ts";
import { type LogTarget, logChanged, logCreated, logDeleted, loggedTerms } from "../../attributes/manager-log.ts";
import { checkQueuePartition } from "../../attributes/partition-rules.ts";
import { checkResourceNames } from "../../attributes/resource-names.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import type { Attrs, Queue, ServerState } from "../../state/state.ts";

export function manageQueue(tx: Transaction, request: ManagerRequest): Answer {
  switch (request.verb) {
    case "create":
      return createQueue(tx, request);
    case "delete":
      return deleteQueues(tx, request.name);
    case "set":
    case "unset":
      return changeQueues(tx, request, request.verb);
    default: {
      const unreachable: never = request.verb;
      return unreachable;
    }
  }
}

function createQueue(tx: Transaction, { name, attrs }: ManagerRequest): Answer {
  const { state } = tx;
  // PBS answers with the error number and no text.
  if (name.length > QUEUE_NAME_LENGTH_MAX) throw new Reject(PBSE.QUENBIG, null);
  checkObjectName("queue", name);
  if (state.queues.has(name)) throw reject(PBSE.QUEEXIST);
  const changed = changeAttrs({}, attrs, { table: QUEUE_ATTRIBUTES, resources: state.resources, who: tx.who, creating: true });
  checkQueue(state, changed, name, null);
  logCreated(tx, target(name), loggedTerms(changed));
  tx.apply({ kind: "created", object: "queue", name, attrs: changed.after });
  return answerWithWarning(tx, [[name, changed.after]]);
}

function changeQueues(tx: Transaction, request: ManagerRequest, verb: "set" | "unset"): Answer {
  const { state } = tx;
  const changes = queuesNamed(state, request.name).map((queue) => {
    const changed = changeAttrs(queue.attrs, request.attrs, { table: QUEUE_ATTRIBUTES, resources: state.resources, who: tx.who });
    checkQueue(state, changed, queue.name, queue);
    return { name: queue.name, changed };
  });
  for (const { name, changed } of changes) {
    logChanged(tx, target(name), verb, loggedTerms(changed));
    tx.apply({ kind: "changed", object: "queue", name, ...delta(changed) });
  }
  return verb === "unset"
    ? {}
    : answerWithWarning(
        tx,
        changes.map(({ name, changed }) => [name, changed.after] as const),
      );
}

function deleteQueues(tx: Transaction, name: string): Answer {
  const queues = queuesNamed(tx.state, name);
  const busy = queues.filter((queue) => isBusy(tx.state, queue));
  if (name !== "" && busy.length > 0) throw reject(PBSE.OBJBUSY);
  for (const queue of queues) {
    if (busy.includes(queue)) continue;
    logDeleted(tx, target(queue.name));
    tx.apply({ kind: "deleted", object: "queue", name: queue.name });
  }
  return answerFailures(
    tx,
    PBSE.OBJBUSY,
    busy.map((queue) => queue.name),
  );
}

/** Whether the queue has jobs or vnodes, or belongs to a reservation. */
function isBusy(state: ServerState, queue: Queue): boolean {
  if (queue.jobs.size > 0 || queue.nodes > 0) return true;
  for (const resv of state.resvs.values()) if (resv.attrs["queue"] === queue.name) return true;
  return false;
}

/** The queue with this name, or all queues for "". Refuses an unknown name with 15018. */
function queuesNamed(state: ServerState, name: string): Queue[] {
  const queues = name === "" ? [...state.queues.values()] : [state.queues.get(name)];
  const found = queues.filter((queue) => queue !== undefined);
  if (found.length === 0) throw reject(PBSE.UNKQUE);
  return found;
}

function checkQueue(state: ServerState, changed: Changed, name: string, queue: Queue | null): void {
  if (changed.terms.some(({ def, op }) => def.name === "queue_type" && isUnset(op))) throw reject(PBSE.NEEDQUET);
  checkQueueType(changed, queue);
  checkQueuePartition(state, changed, queue);
  checkResourceNames(state, changed);
  if (changed.touched.has("enabled")) checkEnabled(changed.after);
  checkLimitStyles(state, changed, name);
}

/** Refuses with 15026 a change of queue_type while the queue has jobs or vnodes. */
function checkQueueType({ before, after, touched }: Changed, queue: Queue | null): void {
  if (queue === null || !touched.has("queue_type") || before["queue_type"] === after["queue_type"]) return;
  if (before["queue_type"] !== undefined && (queue.nodes > 0 || queue.jobs.size > 0)) throw reject(PBSE.ATTRTYPE);
}

/** Refuses with 15030 to enable a queue without a type, or a routing queue without destinations. As in PBS, later changes are not checked again. */
function checkEnabled(after: Attrs): void {
  if (after["enabled"] !== true) return;
  const destinations = after["route_destinations"];
  const complete =
    after["queue_type"] === "Route" ? Array.isArray(destinations) && destinations.length > 0 : after["queue_type"] !== undefined;
  if (!complete) throw reject(PBSE.QUENOEN);
}

/**
 * Answers with a warning if a queue has an attribute that is not for its type: an error reply (15026) that names the first
 * such attribute in the order of the table. The values are stored nevertheless.
 */
function answerWithWarning(tx: Transaction, queues: readonly (readonly [name: string, attrs: Attrs])[]): Answer {
  for (const [name, attrs] of queues) {
    const odd = QUEUE_ATTRIBUTES.rows.find(
      (def) => def.only !== undefined && def.only !== attrs["queue_type"] && attrs[def.name] !== undefined,
    );
    if (odd !== undefined) return answerError(tx, PBSE.ATTRTYPE, `Warning: type of queue ${name} incompatible with attribute ${odd.name}`);
  }
  return {};
}

const target = (name: string): LogTarget => ({ class: "Que", object: name });
