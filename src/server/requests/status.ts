// Status of objects: qstat, qmgr list and print, pbsnodes. The caller gets the attributes that it may read, in the order of the attribute table.

import type { StatusItem, StatusRequest } from "#protocol/messages.ts";
import type { Answer, Transaction } from "../engine/transaction.ts";
import { jobStatus } from "../status/job.ts";
import { nodeStatus } from "../status/node.ts";
import { backendStatus, queueStatus, resourceStatus, schedStatus, serverStatus } from "../status/object.ts";
import { resvStatus } from "../status/resv.ts";
import { hookStatus } from "./manager/manager-hook.ts";

export function status(tx: Transaction, request: StatusRequest): Answer {
  switch (request.object) {
    case "job":
      return jobStatus(tx, request);
    case "server":
      return give(tx, serverStatus(tx, request));
    case "queue":
      return give(tx, queueStatus(tx, request));
    case "node":
      return give(tx, nodeStatus(tx, request));
    case "sched":
      return give(tx, schedStatus(tx, request));
    case "backend":
      return give(tx, backendStatus(tx, request));
    case "resource":
      return give(tx, resourceStatus(tx, request));
    case "resv":
      return give(tx, resvStatus(tx, request));
    case "hook":
    case "pbshook":
      return give(tx, hookStatus(tx, request));
    default: {
      const unreachable: never = request.object;
      return unreachable;
    }
  }
}

/** The largest number of items in one frame of a reply. */
const PART_ITEMS_MAX = 500;

function give(tx: Transaction, items: readonly StatusItem[]): Answer {
  for (let at = 0; at < items.length; at += PART_ITEMS_MAX) tx.part(items.slice(at, at + PART_ITEMS_MAX));
  return {};
}
