// qmgr create|delete|set|unset node (docs/reference/attributes.md 5 and 10). Values that an administrator sets on a vnode are marked, so that reports of its
// mom do not overwrite them.

import { defaultAttributes } from "#model/attribute.ts";
import { checkObjectName } from "#model/object-names.ts";
import { PBSE, Reject, reject } from "#model/pbse.ts";
import { NODE_ATTRIBUTES } from "#model/tables/node-attributes.ts";
import type { ManagerRequest } from "#protocol/messages.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { answerFailures } from "../../attributes/answers.ts";
import { changeAttrs } from "../../attributes/change.ts";
import { logChanged, logCreated, logDeleted, loggedTerms } from "../../attributes/manager-log.ts";
import { changedNode, checkKnown, checkNode, enterNodeChange, marks, nodeTarget } from "../../attributes/vnode-change.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { isOwnName } from "../../state/own-host.ts";
import type { Attrs, ServerState, Vnode } from "../../state/state.ts";

export function manageNode(tx: Transaction, request: ManagerRequest): Answer {
  switch (request.verb) {
    case "create":
      return createNode(tx, request);
    case "delete":
      return deleteNodes(tx, request.name);
    case "set":
    case "unset":
      return changeNodes(tx, request, request.verb);
    default: {
      const unreachable: never = request.verb;
      return unreachable;
    }
  }
}

function createNode(tx: Transaction, { name, attrs }: ManagerRequest): Answer {
  const { state } = tx;
  checkObjectName("node", name);
  if (state.vnodes.has(name)) throw reject(PBSE.NODEEXIST);
  checkKnown(attrs);
  const fresh = { ...defaultAttributes(NODE_ATTRIBUTES), Mom: [name] };
  const changed = changeAttrs(fresh, attrs, { table: NODE_ATTRIBUTES, resources: state.resources, who: tx.who, creating: true });
  checkNode(state, changed, null);
  const hosts = (changed.after["Mom"] as readonly string[] | undefined) ?? [name];
  for (const host of hosts) if (!isKnownHost(tx, host)) throw unknownHost(tx, host);
  const moms = hosts.map((host) => momAt(tx, host));
  logCreated(tx, nodeTarget(name), loggedTerms(changed));
  const set_by_admin = marks(changed.after, attrs).add;
  tx.apply({ kind: "created", object: "node", name, attrs: withIdentity(changed.after, name, moms), set_by_admin });
  return {};
}

/**
 * Returns the name of the mom on a host. For an address, this is the short name of the host with that address, as in PBS,
 * unless a mom has the address itself as its name (PBS_MOM_NODE_NAME).
 */
function momAt(tx: Transaction, host: string): string {
  if (!isAddress(host) || isHost(tx, host)) return host;
  const name = tx.resolved(host);
  if (name === null) return host;
  if (isAddress(name) || isHost(tx, name)) return name;
  // A mom has the short name of its host unless it is given another.
  return name.split(".")[0] ?? name;
}

const isHost = (tx: Transaction, host: string): boolean => tx.hasMom(host) || tx.state.hosts.has(host);

/** The refusal of an unknown host. Its text is the text of PBS, because tools compare it. The log gives the reason. */
function unknownHost(tx: Transaction, host: string): Reject {
  tx.log({ event: LOG_EVENT.ERROR, class: "Node", object: host, text: "the name of this host does not resolve" });
  return reject(PBSE.UNKNODE);
}

/** Adds the resources host and vnode, unless the administrator has set them. */
function withIdentity(attrs: Attrs, name: string, moms: readonly string[]): Attrs {
  const [mom = name] = moms;
  const host = isAddress(mom) ? mom : (mom.split(".")[0] ?? mom);
  return {
    ...attrs,
    Mom: moms,
    resources_available: { host, vnode: name, ...(attrs["resources_available"] as object | undefined) },
  };
}

/** Whether the name of a host is usable: it means this host, is an address, is already known, or resolves. */
function isKnownHost(tx: Transaction, host: string): boolean {
  return isOwnName(tx.config, host) || isAddress(host) || tx.state.hosts.has(host) || tx.resolved(host) !== null;
}

const isAddress = (host: string): boolean => /^[0-9]{1,3}(\.[0-9]{1,3}){3}$/.test(host) || host.includes(":");

function changeNodes(tx: Transaction, request: ManagerRequest, verb: "set" | "unset"): Answer {
  const failed: string[] = [];
  const changes = nodesNamed(tx.state, request.name).flatMap((vnode) => {
    try {
      return [{ vnode, changed: changedNode(tx, vnode, request.attrs) }];
    } catch (error) {
      // If the request is for one node, the refusal is the reply. If it is for all nodes, each node that can be changed is changed; but an unknown attribute, or
      // one that the caller may not set, is refused at once.
      if (request.name !== "" || !(error instanceof Reject) || error.code === PBSE.NOATTR || error.code === PBSE.ATTRRO) throw error;
      failed.push(vnode.name);
      return [];
    }
  });
  for (const { vnode, changed } of changes) {
    logChanged(tx, nodeTarget(vnode.name), verb, loggedTerms(changed));
    enterNodeChange(tx, vnode, request.attrs, changed);
  }
  return answerFailures(tx, PBSE.GMODERR, failed);
}

function deleteNodes(tx: Transaction, name: string): Answer {
  const nodes = nodesNamed(tx.state, name);
  const busy = nodes.filter((vnode) => vnode.jobs.size > 0);
  if (name !== "" && busy.length > 0) throw reject(PBSE.OBJBUSY);
  for (const vnode of nodes) {
    if (busy.includes(vnode)) continue;
    logDeleted(tx, nodeTarget(vnode.name));
    tx.apply({ kind: "deleted", object: "node", name: vnode.name });
  }
  return answerFailures(
    tx,
    PBSE.OBJBUSY,
    busy.map((vnode) => vnode.name),
  );
}

/** The node with this name, or all nodes for "". Refuses with 15062 an unknown name, and "" if there is no node. */
function nodesNamed(state: ServerState, name: string): Vnode[] {
  const vnodes = name === "" ? [...state.vnodes.values()] : [state.vnodes.get(name)];
  const found = vnodes.filter((vnode) => vnode !== undefined);
  if (found.length === 0) throw reject(PBSE.UNKNODE);
  return found;
}
