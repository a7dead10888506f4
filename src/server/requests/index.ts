// The registry of request handlers: one file for each kind of request. An unknown kind is refused with 15005.

import { PBSE, reject } from "#model/pbse.ts";
import type { Request, RequestKind } from "#protocol/messages.ts";
import type { Answer, RequestHandler, Transaction } from "../engine/transaction.ts";
import { backup } from "./backup.ts";
import { explainJob } from "./explain/explain-job.ts";
import { viewSched } from "./explain/view-sched.ts";
import { viewUnserved } from "./explain/view-unserved.ts";
import { identity } from "./identity.ts";
import { deleteJob } from "./job/delete-job.ts";
import { holdJob } from "./job/hold-job.ts";
import { locateJob } from "./job/locate-job.ts";
import { messageJob } from "./job/message-job.ts";
import { modifyJob } from "./job/modify-job.ts";
import { moveJobRequest } from "./job/move-job.ts";
import { orderJob } from "./job/order-job.ts";
import { queueJob } from "./job/queue-job.ts";
import { queueJobs } from "./job/queue-jobs.ts";
import { releaseJob } from "./job/release-job.ts";
import { releaseNodes } from "./job/release-nodes.ts";
import { rerunJob } from "./job/rerun-job.ts";
import { runJobRequest } from "./job/run-job.ts";
import { selectJobs } from "./job/select-jobs.ts";
import { signalJob } from "./job/signal-job.ts";
import { waitJob } from "./job/wait-job.ts";
import { manager } from "./manager/manager.ts";
import { exportHook, importHook } from "./manager/manager-hook.ts";
import { deleteResv } from "./resv/delete-resv.ts";
import { modifyResv } from "./resv/modify-resv.ts";
import { submitResv } from "./resv/submit-resv.ts";
import { shutdownRequest } from "./shutdown.ts";
import { status } from "./status.ts";
import { viewHosts } from "./view-hosts.ts";
import { confirmDead, viewRunners } from "./view-runners.ts";

type Registry = { readonly [K in RequestKind]?: RequestHandler<K> };

/** The handlers by kind of request. A new handler must be entered here. */
const HANDLERS: Registry = {
  manager,
  status,
  "queue-job": queueJob,
  "queue-jobs": queueJobs,
  "select-jobs": selectJobs,
  "delete-job": deleteJob,
  "modify-job": modifyJob,
  "hold-job": holdJob,
  "release-job": releaseJob,
  "release-nodes": releaseNodes,
  "move-job": moveJobRequest,
  "order-job": orderJob,
  "message-job": messageJob,
  "signal-job": signalJob,
  "rerun-job": rerunJob,
  "run-job": runJobRequest,
  "locate-job": locateJob,
  "wait-job": waitJob,
  "explain-job": explainJob,
  "view-sched": viewSched,
  "view-unserved": viewUnserved,
  "view-hosts": viewHosts,
  "view-runners": viewRunners,
  "confirm-dead": confirmDead,
  "import-hook": importHook,
  "export-hook": exportHook,
  shutdown: shutdownRequest,
  backup,
  identity,
  "submit-resv": submitResv,
  "delete-resv": deleteResv,
  "modify-resv": modifyResv,
};

/** Serves one request. handlers: tests may replace some handlers or add others. */
export function handle(tx: Transaction, request: Request, handlers: Registry = HANDLERS): Answer {
  const handler = handlers[request.kind] as RequestHandler<RequestKind> | undefined;
  if (handler === undefined) throw reject(PBSE.UNKREQ);
  return handler(tx, request as never);
}
