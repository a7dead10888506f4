// qmgr create, delete, set, unset. Each type of object has a file of its own; this file checks the rights that do not depend
// on attributes (docs/reference/qmgr.md 5).

import { PBSE, reject } from "#model/pbse.ts";
import type { ManagerRequest } from "#protocol/messages.ts";
import { checkManager, checkOperator } from "../../attributes/permission.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { manageBackend } from "./manager-backend.ts";
import { manageHook } from "./manager-hook.ts";
import { manageNode } from "./manager-node.ts";
import { manageQueue } from "./manager-queue.ts";
import { manageResource } from "./manager-resource.ts";
import { manageSched } from "./manager-sched.ts";
import { manageServer } from "./manager-server.ts";

export function manager(tx: Transaction, request: ManagerRequest): Answer {
  const { object, verb } = request;
  // A delete request never has attributes; if there are some, the client probably wanted something else.
  if (verb === "delete" && request.attrs.length > 0) throw reject(PBSE.IVALREQ);
  if (verb === "unset" && request.attrs.some(({ op }) => op !== "unset")) throw reject(PBSE.IVALREQ);
  if (object === "hook" || object === "pbshook") return manageHook(tx, request);
  if (verb === "create" || verb === "delete" || object === "resource") checkManager(tx.who);
  else checkOperator(tx.who);
  switch (object) {
    case "server":
      return manageServer(tx, request);
    case "queue":
      return manageQueue(tx, request);
    case "node":
      return manageNode(tx, request);
    case "resource":
      return manageResource(tx, request);
    case "sched":
      return manageSched(tx, request);
    case "backend":
      return manageBackend(tx, request);
    default: {
      const unreachable: never = object;
      return unreachable;
    }
  }
}
