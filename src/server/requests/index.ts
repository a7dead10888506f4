// The registry of request handlers: one file a kind. An unknown kind is refused with 15005.

import { PBSE, reject } from "#model/pbse.ts";
import type { Request, RequestKind } from "#protocol/messages.ts";
import type { Answer, RequestHandler, Transaction } from "../transaction.ts";
import { backup } from "./backup.ts";
import { deleteJob } from "./delete-job.ts";
import { deleteResv } from "./delete-resv.ts";
import { explainJob } from "./explain-job.ts";
import { holdJob } from "./hold-job.ts";
import { locateJob } from "./locate-job.ts";
import { manager } from "./manager.ts";
import { exportHook, importHook } from "./manager-hook.ts";
import { messageJob } from "./message-job.ts";
import { modifyJob } from "./modify-job.ts";
import { modifyResv } from "./modify-resv.ts";
import { moveJobRequest } from "./move-job.ts";
import { orderJob } from "./order-job.ts";
import { queueJob } from "./queue-job.ts";
import { queueJobs } from "./queue-jobs.ts";
import { releaseJob } from "./release-job.ts";
import { releaseNodes } from "./release-nodes.ts";
import { rerunJob } from "./rerun-job.ts";
import { runJobRequest } from "./run-job.ts";
import { selectJobs } from "./select-jobs.ts";
import { shutdownRequest } from "./shutdown.ts";
import { signalJob } from "./signal-job.ts";
import { status } from "./status.ts";
import { submitResv } from "./submit-resv.ts";
import { viewSched } from "./view-sched.ts";
import { viewUnserved } from "./view-unserved.ts";
import { waitJob } from "./wait-job.ts";

type Registry = { readonly [K in RequestKind]?: RequestHandler<K> };

/** A new handler is entered here. */
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
  "import-hook": importHook,
  "export-hook": exportHook,
  shutdown: shutdownRequest,
  backup,
  "submit-resv": submitResv,
  "delete-resv": deleteResv,
  "modify-resv": modifyResv,
};

/** Serves one request. handlers: tests may replace or add some. */
export function handle(tx: Transaction, request: Request, handlers: Registry = HANDLERS): Answer {
  const handler = handlers[request.kind] as RequestHandler<RequestKind> | undefined;
  if (handler === undefined) throw reject(PBSE.UNKREQ);
  return handler(tx, request as never);
}
