// The numbers under which PBS logs requests: `Type 19 request received from ...`. Kinds that PBS does not have are 0.

import type { Request, RequestKind, StatusObject } from "#protocol/messages.ts";

const NUMBERS: { readonly [K in RequestKind]: number } = {
  "queue-job": 1,
  "queue-jobs": 1,
  "delete-job": 6,
  "hold-job": 7,
  "locate-job": 8,
  manager: 9,
  "message-job": 10,
  "modify-job": 11,
  "move-job": 12,
  "release-job": 13,
  "rerun-job": 14,
  "release-nodes": 90,
  "run-job": 15,
  "select-jobs": 16,
  shutdown: 17,
  "signal-job": 18,
  status: 19,
  "order-job": 50,
  "submit-resv": 70,
  "delete-resv": 72,
  "modify-resv": 91,
  "import-hook": 9,
  "export-hook": 9,
  "wait-job": 0,
  "explain-job": 0,
  "view-sched": 0,
  "view-unserved": 0,
  backup: 0,
};
const STATUS: { readonly [K in StatusObject]: number } = {
  job: 19,
  queue: 20,
  server: 21,
  node: 58,
  resv: 71,
  sched: 81,
  resource: 82,
  hook: 84,
  pbshook: 84,
};

export function requestNumber(request: Request): number {
  if (request.kind === "status") return STATUS[request.object];
  if (request.kind === "run-job" && request.async === true) return 23;
  return NUMBERS[request.kind];
}
