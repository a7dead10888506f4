// qmgr create|delete|set|unset backend (docs/runners.md).
//
// I1. A backend that is enabled has a type. Its type does not change while it is enabled or has runners: a cluster manager of another type does not know these
//     runners, so the server could not learn whether they still exist.
// I2. A backend with runners is not deleted, because then nothing would end them.
// I3. No backend is enabled in a complex with two servers (../../runners/usable.ts).

import { defaultAttributes } from "#model/attribute.ts";
import { checkObjectName } from "#model/object-names.ts";
import { PBSE, Reject } from "#model/pbse.ts";
import { BACKEND_ATTRIBUTES } from "#model/tables/backend-attributes.ts";
import type { AttrOp, ManagerRequest } from "#protocol/messages.ts";
import { answerFailures } from "../../attributes/answers.ts";
import { type Changed, changeAttrs, delta } from "../../attributes/change.ts";
import { type LogTarget, logChanged, logCreated, logDeleted, loggedTerms } from "../../attributes/manager-log.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { whyUnusable } from "../../runners/usable.ts";
import { runnersOf } from "../../state/partitions.ts";
import type { Attrs, Backend, ServerState } from "../../state/state.ts";

export function manageBackend(tx: Transaction, request: ManagerRequest): Answer {
  switch (request.verb) {
    case "create":
      return createBackend(tx, request);
    case "delete":
      return deleteBackends(tx, request.name);
    case "set":
    case "unset":
      return changeBackends(tx, request, request.verb);
    default: {
      const unreachable: never = request.verb;
      return unreachable;
    }
  }
}

function createBackend(tx: Transaction, { name, attrs }: ManagerRequest): Answer {
  checkObjectName("backend", name);
  if (tx.state.backends.has(name)) throw refuse(`backend ${name} exists already`);
  const changed = changedBackend(tx, defaultAttributes(BACKEND_ATTRIBUTES), attrs, { creating: true, runners: 0 });
  logCreated(tx, target(name), loggedTerms(changed));
  tx.apply({ kind: "created", object: "backend", name, attrs: changed.after });
  return {};
}

function changeBackends(tx: Transaction, request: ManagerRequest, verb: "set" | "unset"): Answer {
  const changes = backendsNamed(tx.state, request.name).map((backend) => ({
    backend,
    changed: changedBackend(tx, backend.attrs, request.attrs, { creating: false, runners: runnersOf(tx.state, backend.name).length }),
  }));
  for (const { backend, changed } of changes) {
    logChanged(tx, target(backend.name), verb, loggedTerms(changed));
    tx.apply({ kind: "changed", object: "backend", name: backend.name, ...delta(changed) });
  }
  return {};
}

function deleteBackends(tx: Transaction, name: string): Answer {
  const backends = backendsNamed(tx.state, name);
  const busy = backends.filter((backend) => runnersOf(tx.state, backend.name).length > 0).map((backend) => backend.name);
  if (name !== "" && busy.length > 0)
    throw new Reject(PBSE.OBJBUSY, `backend ${name} still has runners: set enabled=False and wait until they have ended`);
  for (const backend of backends) {
    if (busy.includes(backend.name)) continue;
    logDeleted(tx, target(backend.name));
    tx.apply({ kind: "deleted", object: "backend", name: backend.name });
  }
  return answerFailures(tx, PBSE.OBJBUSY, busy);
}

type Present = { readonly creating: boolean /** number of its runners */; readonly runners: number };

function changedBackend(tx: Transaction, before: Attrs, ops: readonly AttrOp[], { creating, runners }: Present): Changed {
  const changed = changeAttrs(before, ops, { table: BACKEND_ATTRIBUTES, resources: tx.state.resources, who: tx.who, creating });
  const { after, touched } = changed;
  if (after["enabled"] === true && after["type"] === undefined) throw refuse("a backend needs a type before it is enabled");
  const unusable = whyUnusable(tx.config);
  if (unusable !== null && after["enabled"] === true && touched.has("enabled")) throw refuse(unusable);
  if (touched.has("type") && !creating && before["enabled"] === true && after["type"] !== before["type"])
    throw refuse("the type of a backend that is enabled cannot be changed: set enabled=False first");
  if (runners > 0 && after["type"] !== before["type"])
    throw refuse(
      `the type of a backend with runners cannot be changed: set enabled=False and wait until its ${runners} runners have ended`,
    );
  return changed;
}

/** The backend with this name, or all for "". Refuses an unknown name. */
function backendsNamed(state: ServerState, name: string): Backend[] {
  if (name === "") return [...state.backends.values()];
  const backend = state.backends.get(name);
  if (backend === undefined) throw refuse(`Unknown backend ${name}`);
  return [backend];
}

const refuse = (text: string): Reject => new Reject(PBSE.IVALREQ, text);
const target = (name: string): LogTarget => ({ class: "Backend", object: name });
