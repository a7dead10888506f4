// Serves requests: calls the handler of each. If the handler needs an answer from outside of the core, the request waits.
// Long answers (streams) continue page by page or slice by slice.
//
// I1. A request that waits is kept as data (engine/request-runtime.ts). When the answer has arrived, the handler is called
//     again from its beginning, unless the client is gone.

import { PBSE, Reject, reject } from "#model/pbse.ts";
import type { Request, RequestKind, StatusObject } from "#protocol/messages.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { checkAccess, identify } from "../attributes/permission.ts";
import type { Peer } from "../engine/identity.ts";
import { AnswerNeeded, answer, type Kernel, refuse, transaction } from "../engine/kernel.ts";
import { NOTHING_KNOWN, nothingKnown, type WaitingRequest } from "../engine/request-runtime.ts";
import type { HookAsk, Stream, Transaction } from "../engine/transaction.ts";
import { managed } from "../hooks/afterwards.ts";
import { runHooks } from "../hooks/chain.ts";
import { forgetHands } from "../jobs/start-wait.ts";
import { handle } from "../requests/index.ts";
import { forgetQuestion } from "../scheds/questions.ts";
import type { Job } from "../state/state.ts";

/** Serves a client's request. sock: number of the connection, for the log. */
export function serveRequest(kernel: Kernel, peer: Peer, request: Request, token: number, sock: number): void {
  const who = identify(kernel.state, peer);
  const text = `Type ${requestNumber(request)} request received from ${who.user}@${who.host}, sock=${sock}`;
  kernel.out.logs.push({ event: LOG_EVENT.DEBUG2, class: "Req", object: "", text });
  serve(kernel, token, { who, request, known: NOTHING_KNOWN });
}

/** Called when records of the history were read. null: the history does not contain the record. */
export function historyRead(kernel: Kernel, token: number, jobs: ReadonlyMap<string, Job | null>): void {
  goOn(kernel, token, ({ known }) => {
    for (const [id, job] of jobs) known.jobs.set(id, job);
  });
}

export function hostResolved(kernel: Kernel, token: number, host: string, name: string | null): void {
  goOn(kernel, token, ({ known }) => known.hosts.set(host, name));
}

/** Serves a waiting request again, because an answer has arrived. learn: adds the answer to those that the request already has. */
function goOn(kernel: Kernel, token: number, learn: (waiting: WaitingRequest) => void): void {
  const waiting = kernel.requests.waiting.get(token);
  if (waiting === undefined) return;
  kernel.requests.waiting.delete(token);
  learn(waiting);
  serve(kernel, token, waiting);
}

export function historyPage(kernel: Kernel, token: number, jobs: readonly Job[], last: boolean): void {
  const waiting = kernel.requests.waiting.get(token);
  const stream = waiting?.stream;
  if (waiting === undefined || stream === undefined || "slice" in stream) return;
  const isDone = step(kernel, token, waiting, (tx) => {
    stream.page(tx, jobs, last);
    return !last;
  });
  if (isDone) streamOver(kernel, token, waiting, stream);
}

/** Makes the next slice of a stream. Returns whether more slices follow. */
export function slice(kernel: Kernel, token: number): boolean {
  const waiting = kernel.requests.waiting.get(token);
  const stream = waiting?.stream;
  if (waiting === undefined || stream === undefined || !("slice" in stream)) return false;
  const isDone = step(kernel, token, waiting, (tx) => stream.slice(tx));
  if (isDone) streamOver(kernel, token, waiting, stream);
  return kernel.requests.waiting.get(token) === waiting;
}

/** Removes waiting requests whose clients are gone. Requests to moms stay open, because what a mom does to a job counts even if no client waits. */
export function forgetClients(kernel: Kernel, tokens: readonly number[]): void {
  if (tokens.length === 0) return;
  const gone = new Set(tokens);
  for (const token of tokens) kernel.requests.waiting.delete(token);
  for (const lists of [kernel.jobs.waiters, kernel.jobs.reruns, kernel.scheds.qruns, kernel.resvs.waiters]) {
    for (const [id, list] of lists) {
      const left = list.filter((token) => !gone.has(token));
      if (left.length === 0) lists.delete(id);
      else if (left.length < list.length) lists.set(id, left);
    }
  }
  for (const token of tokens) forgetQuestion(kernel, token);
  forgetHands(kernel, gone);
}

/** Asks the shell for what a stream needs next: pages of the history, or another call of slice(). */
function follow(kernel: Kernel, token: number, waiting: WaitingRequest & { readonly stream: Stream }): void {
  const { stream } = waiting;
  kernel.requests.waiting.set(token, waiting);
  if ("slice" in stream) {
    kernel.out.actions.push({ kind: "go-on", token });
    return;
  }
  const { queue, seqs, subjobs } = stream;
  const walk = { subjobs: subjobs === true, ...(queue === undefined ? {} : { queue }), ...(seqs === undefined ? {} : { seqs }) };
  kernel.out.actions.push({ kind: "page-history", token, walk });
}

/**
 * Does the work for one page or slice. work: returns whether more pages or slices follow. A refusal becomes the reply and
 * ends the stream. Returns whether this was the last page or slice.
 */
function step(kernel: Kernel, token: number, waiting: WaitingRequest, work: (tx: Transaction) => boolean): boolean {
  try {
    return !work(transaction(kernel, waiting.who, token, waiting.known));
  } catch (error) {
    if (!(error instanceof Reject)) throw error;
    kernel.requests.waiting.delete(token);
    refuse(kernel, token, error);
    return false;
  }
}

function streamOver(kernel: Kernel, token: number, waiting: WaitingRequest, stream: Stream): void {
  kernel.requests.waiting.delete(token);
  const next = stream.next?.() ?? null;
  if (next !== null) return follow(kernel, token, { ...waiting, stream: next });
  const value = stream.value?.();
  answer(kernel, token, value === undefined ? {} : { value });
}

/** Calls the handler of a request. A refusal becomes an error reply and a log line. If an answer from outside is needed, the request waits. */
function serve(kernel: Kernel, token: number, waiting: WaitingRequest): void {
  const { who, request, known } = waiting;
  const tx = transaction(kernel, who, token, known);
  const clients = kernel.out.clients.length;
  try {
    if (kernel.ending.stopping !== "no" && request.kind !== "status" && request.kind !== "shutdown") throw reject(PBSE.SVRDOWN);
    checkAccess(kernel.state, kernel.config.host, who);
    const result = handle(tx, request);
    if (typeof result === "object" && "stream" in result) {
      follow(kernel, token, { ...waiting, stream: result.stream });
      return;
    }
    answer(kernel, token, result);
    if (request.kind === "manager" || request.kind === "import-hook") {
      const said = kernel.out.clients.slice(clients).find((frame) => frame.token === token);
      if (said?.kind === "error") managed(kernel, who, request, said.code, said.text);
      else managed(kernel, who, request, 0, (said?.kind === "ok" ? said.text : undefined) ?? null);
    }
  } catch (error) {
    // If the handler did not reach its end, the parts of the answer that it has made are not sent.
    kernel.out.clients.length = clients;
    if (error instanceof AnswerNeeded) {
      const held = known === NOTHING_KNOWN ? { ...waiting, known: nothingKnown() } : waiting;
      kernel.requests.waiting.set(token, held);
      if (error.what === "hooks") return askHooks(kernel, token, held, error.asks);
      const [name = ""] = error.names;
      kernel.out.actions.push(
        error.what === "job" ? { kind: "read-history", token, ids: error.names } : { kind: "resolve-host", token, host: name },
      );
      return;
    }
    if (!(error instanceof Reject)) throw error;
    refuse(kernel, token, error);
    if (request.kind === "manager" || request.kind === "import-hook") managed(kernel, who, request, error.code, error.text);
    const text = `Reject reply code=${error.code}, aux=0, type=${requestNumber(request)}, from ${who.user}@${who.host}`;
    kernel.out.logs.push({ event: LOG_EVENT.DEBUG, class: "Req", object: "req_reject", text });
  }
}

/** Runs the hooks whose answers a request needs. The request is served again when all have answered, unless its client is gone by then. */
function askHooks(kernel: Kernel, token: number, waiting: WaitingRequest, asks: readonly HookAsk[]): void {
  let left = asks.length;
  for (const { key, event, input } of asks) {
    runHooks(kernel, event, input(), (verdict) => {
      waiting.known.hooks.set(key, verdict);
      left--;
      if (left > 0 || kernel.requests.waiting.get(token) !== waiting) return;
      kernel.requests.waiting.delete(token);
      serve(kernel, token, waiting);
    });
  }
}

// --- the log

/** The numbers under which PBS logs requests: `Type 19 request received from ...`. Kinds that PBS does not have are 0. */
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
  "view-hosts": 0,
  "view-runners": 0,
  "confirm-dead": 0,
  backup: 0,
  identity: 0,
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
  backend: 0,
};

function requestNumber(request: Request): number {
  if (request.kind === "status") return STATUS[request.object];
  if (request.kind === "run-job" && request.async === true) return 23;
  return NUMBERS[request.kind];
}
