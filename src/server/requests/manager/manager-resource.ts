// qmgr create|delete|set|unset resource (docs/reference/attributes.md 8 and 10).
//
// I1. Built-in resources cannot be changed or deleted (15004).
// I2. While a job (also a finished one in the history) or reservation requests a resource, the resource cannot be deleted,
//     and its type and flags cannot be changed. While any object has a value of it, its type cannot be changed (15174). When
//     a resource is deleted, its values are removed from server, queues and vnodes.
// I3. A resource that a formula or restrict_res_to_release_on_suspend names cannot be deleted.

import { checkObjectName } from "#model/object-names.ts";
import { PBSE, Reject, reject } from "#model/pbse.ts";
import {
  checkResourceFlags,
  customResource,
  parseResourceFlags,
  parseResourceType,
  type ResourceDef,
  type ResourceType,
} from "#model/resource-table.ts";
import type { AttrOp, ManagerRequest } from "#protocol/messages.ts";
import { answerFailures } from "../../attributes/answers.ts";
import { formulaWith } from "../../attributes/formula-rules.ts";
import { type LoggedTerm, type LogTarget, logChanged, logCreated, logDeleted } from "../../attributes/manager-log.ts";
import { holderOf, removeResource, usedByJob, usedByJobAttrs } from "../../attributes/resource-use.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";

export function manageResource(tx: Transaction, request: ManagerRequest): Answer {
  switch (request.verb) {
    case "create":
      return createResource(tx, request);
    case "delete":
      return deleteResources(tx, request.name);
    case "set":
    case "unset":
      return changeResource(tx, request);
    default: {
      const unreachable: never = request.verb;
      return unreachable;
    }
  }
}

function createResource(tx: Transaction, { name, attrs }: ManagerRequest): Answer {
  if (name === "") throw reject(PBSE.BADATVAL);
  if (tx.state.resources.has(name)) throw reject(PBSE.DUPLIST);
  checkObjectName("resource", name);
  const resource = definition(customResource(name), attrs);
  logCreated(tx, target(name), terms(attrs));
  tx.apply({ kind: "resource-put", resource });
  return {};
}

/** The definition of a resource after operations. Refuses an unknown attribute with 15002, a bad value or combination with 15014, unset of type with 15004. */
function definition(old: ResourceDef, attrs: readonly AttrOp[]): ResourceDef {
  let type: ResourceType = old.type;
  let flags = old.flags;
  for (const { name, op, value } of attrs) {
    switch (name.toLowerCase()) {
      case "type":
        if (op === "unset") throw reject(PBSE.IVALREQ);
        type = parseResourceType(value);
        break;
      case "flag":
        flags = op === "unset" ? "" : newFlags(flags, op, value);
        break;
      default:
        throw reject(PBSE.NOATTR);
    }
  }
  checkResourceFlags(old.name, type, flags);
  return customResource(old.name, type, flags);
}

function newFlags(old: string, op: AttrOp["op"], value: string): string {
  const given = parseResourceFlags(value);
  if (op === "+=") return parseResourceFlags([...new Set(old + given)].join(""));
  return op === "-=" ? [...old].filter((flag) => !given.includes(flag)).join("") : given;
}

function changeResource(tx: Transaction, request: ManagerRequest): Answer {
  const verb = request.verb === "unset" ? "unset" : "set";
  const old = customNamed(tx, request.name);
  const resource = definition(old, request.attrs);
  const finish = (at: Transaction): void => {
    logChanged(at, target(old.name), verb, terms(request.attrs));
    at.apply({ kind: "resource-put", resource });
  };
  if (resource.type === old.type && resource.flags === old.flags) {
    finish(tx);
    return {};
  }
  return unlessUsedByJobs(tx, [old.name], (later) => {
    const holder = resource.type === old.type ? null : (holderOf(later.state, old.name) ?? formulaWith(later.state, old.name));
    if (holder !== null) throw busy(holder);
    finish(later);
  });
}

function deleteResources(tx: Transaction, name: string): Answer {
  if (name === "") return deleteAll(tx);
  customNamed(tx, name);
  return unlessUsedByJobs(tx, [name], (later) => {
    const holder = isRestricting(later, name) ? "server" : formulaWith(later.state, name);
    if (holder !== null) throw busy(holder);
    deleteOne(later, name);
  });
}

/** Deletes all custom resources that may be deleted (I2, I3). The history is not searched: while it has records, no resource is deleted. */
function deleteAll(tx: Transaction): Answer {
  const names = [...tx.state.resources.values()].filter((def) => def.builtin !== true).map((def) => def.name);
  const held = names.filter((each) => usedByJob(tx.state, each) !== null || tx.state.history_count > 0 || isNamed(tx, each));
  for (const each of names) if (!held.includes(each)) deleteOne(tx, each);
  return answerFailures(tx, PBSE.RESCBUSY, held);
}

function deleteOne(tx: Transaction, name: string): void {
  removeResource(tx, name);
  logDeleted(tx, target(name));
  tx.apply({ kind: "resource-deleted", name });
}

const isNamed = (tx: Transaction, name: string): boolean => isRestricting(tx, name) || formulaWith(tx.state, name) !== null;

const isRestricting = (tx: Transaction, name: string): boolean => {
  const names = tx.state.server["restrict_res_to_release_on_suspend"];
  return Array.isArray(names) && names.includes(name);
};

/** Does the work if no job or reservation requests or has used the resources; otherwise refuses. Searches live jobs, reservations and then, page by page, the history. */
function unlessUsedByJobs(tx: Transaction, names: readonly string[], work: (tx: Transaction) => void): Answer {
  const check = (at: Transaction): void => {
    for (const name of names) {
      const user = usedByJob(at.state, name);
      if (user !== null) throw busy(user);
    }
  };
  check(tx);
  if (tx.state.history_count === 0) {
    work(tx);
    return {};
  }
  return {
    stream: {
      subjobs: true,
      page(page, jobs, last) {
        for (const job of jobs) for (const name of names) if (usedByJobAttrs(job.attrs, name)) throw busy("job");
        if (!last) return;
        // The live jobs are checked again, because other requests were served during the search.
        check(page);
        work(page);
      },
    },
  };
}

const busy = (holder: string): Reject => new Reject(PBSE.RESCBUSY, `Resource busy on ${holder}`);

/** The custom resource with this name. Refuses an unknown resource with 15035, a built-in one with 15004. */
function customNamed(tx: Transaction, name: string): ResourceDef {
  const def = tx.state.resources.get(name);
  if (def === undefined) throw reject(PBSE.UNKRESC);
  if (def.builtin === true) throw reject(PBSE.IVALREQ);
  return def;
}

const terms = (attrs: readonly AttrOp[]): LoggedTerm[] => attrs.map(({ name, op, value }) => ({ name, op, value, boolean: false }));
const target = (name: string): LogTarget => ({ class: "Resc", object: name });
