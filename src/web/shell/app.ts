// The HTTP interface: who may call what, and which answer each path gives.
//
// W1. Every refusal is a problem (api/problem.ts).
// W2. A request is served only if its Host header names this machine's loopback, so that a page of another site that a browser was led to by DNS gets nothing.
// W3. A path is checked for the token and its scope before anything of the request is parsed.

import { createHash } from "node:crypto";
import { type Context, Hono } from "hono";
import { parseJobId } from "#model/job-id.ts";
import { codeOf, nameOf, stackOf } from "#support/caught.ts";
import { PARTITA_VERSION } from "#support/version.ts";
import type { Allowance } from "../access/allowance.ts";
import { admit, type Scope, type TokenRecord } from "../access/token.ts";
import { JOBS, KINDS } from "../api/kinds.ts";
import { parseFields, parseListing, TEXT_MAX } from "../api/listing.ts";
import { type Ask, explanationOf, listObjects, oneObject } from "../api/objects.ts";
import { openApi } from "../api/openapi.ts";
import { type Problem, problem, refusalProblem } from "../api/problem.ts";
import { type Submitter, submitRequest } from "../api/submission.ts";
import type { Metrics } from "./metrics.ts";
import { hashOf } from "./token-file.ts";

export type AppFacts = {
  readonly ask: Ask;
  readonly tokens: () => readonly TokenRecord[];
  readonly allowance: Allowance;
  readonly metrics: Pick<Metrics, "content_type" | "text" | "answered">;
  /** the user as whom this process works */
  readonly submitter: Submitter;
  readonly now_ms: () => number;
  readonly note: (text: string) => void;
};

/** The largest body. A script in it may have every character escaped. */
const BODY_BYTES_MAX = 4 * 1024 * 1024;

const LOOPBACK_HOST = /^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/i;

/** Makes the interface. */
export function webApp(facts: AppFacts): Hono {
  const app = new Hono();
  app.use(async (c, next) => {
    if (!LOOPBACK_HOST.test(c.req.header("host") ?? "")) return answer(c, problem(421, "the Host header must be localhost or 127.0.0.1"));
    await next();
    facts.metrics.answered(c.res.status);
    c.header("X-Content-Type-Options", "nosniff");
    c.header("Referrer-Policy", "no-referrer");
    return undefined;
  });
  app.get("/metrics", async (c) => c.text(await facts.metrics.text(), 200, { "Content-Type": facts.metrics.content_type }));
  const description = openApi(PARTITA_VERSION);
  app.get("/api/v1/openapi.json", (c) => answer(c, description));
  addReads(app, facts);
  addSubmissions(app, facts);
  app.notFound((c) => answer(c, problem(404, `there is nothing at ${c.req.path.slice(0, TEXT_MAX)}`)));
  app.onError((error, c) => answer(c, faultProblem(error, facts.note)));
  return app;
}

function addReads(app: Hono, facts: AppFacts): void {
  for (const kind of KINDS) {
    app.get(
      `/api/v1/${kind.path}`,
      allowed(facts, "read", async (c) => {
        const listing = parseListing(kind, [...new URL(c.req.url).searchParams]);
        return answer(c, "status" in listing ? listing : await listObjects(facts.ask, listing));
      }),
    );
    app.get(
      `/api/v1/${kind.path}/:id`,
      allowed(facts, "read", async (c) => {
        const fields = parseFields(kind, c.req.query("fields") ?? null);
        if (fields !== null && "status" in fields) return answer(c, fields);
        return answer(c, await oneObject(facts.ask, kind, idOf(c), fields));
      }),
    );
  }
  app.get(
    `/api/v1/${JOBS.path}/:id/explain`,
    allowed(facts, "read", async (c) => {
      const told = await explanationOf(facts.ask, idOf(c));
      return answer(c, "status" in told ? told : told.value);
    }),
  );
}

function addSubmissions(app: Hono, facts: AppFacts): void {
  app.post(
    `/api/v1/${JOBS.path}`,
    allowed(facts, "submit", async (c) => {
      if (!/^application\/json *(;|$)/i.test(c.req.header("content-type") ?? ""))
        return answer(c, problem(415, "the body must be application/json"));
      const text = await boundedText(c);
      if (text === null) return answer(c, problem(413, `a body has at most ${BODY_BYTES_MAX} bytes`));
      const body = jsonOf(text);
      const request = body === undefined ? problem(400, "the body is not JSON") : submitRequest(body, facts.submitter);
      if ("status" in request) return answer(c, request);
      const reply = await askOnce(facts.ask, request);
      if (reply === null) return answer(c, UNKNOWN_OUTCOME);
      if (!reply.ok) return answer(c, refusalProblem(reply));
      const { id } = reply.value as { readonly id: string };
      return c.json({ id }, 201, { Location: `/api/v1/${JOBS.path}/${encodeURIComponent(id)}` });
    }),
  );
  app.delete(
    `/api/v1/${JOBS.path}/:id`,
    allowed(facts, "submit", async (c) => {
      const force = c.req.query("force") ?? "false";
      if (force !== "true" && force !== "false") return answer(c, problem(400, "force must be true or false"));
      if (parseJobId(idOf(c)) === null) return answer(c, problem(404, "that is not the id of a job"));
      const reply = await askOnce(facts.ask, { kind: "delete-job", job: idOf(c), ...(force === "true" ? { force: true } : {}) });
      if (reply === null) return answer(c, UNKNOWN_OUTCOME);
      return reply.ok ? c.body(null, 204) : answer(c, refusalProblem(reply));
    }),
  );
}

const UNKNOWN_OUTCOME = problem(
  504,
  "the server did not answer: it is unknown whether the request was carried out; look before you repeat it",
);

/** Sends a request that must not be repeated blindly. null: it was sent, and its outcome is unknown. */
async function askOnce(ask: Ask, request: Parameters<Ask>[0]): Promise<Awaited<ReturnType<Ask>> | null> {
  try {
    return await ask(request);
  } catch (error) {
    if (isNotRunning(error)) throw error;
    return null;
  }
}

/** Whether nobody listens on the server's socket, so that nothing was sent. */
const isNotRunning = (error: unknown): boolean => codeOf(error) === "ECONNREFUSED" || codeOf(error) === "ENOENT";

/** Reads the body as far as the limit allows; null: it is longer. */
async function boundedText(c: Context): Promise<string | null> {
  if (Number(c.req.header("content-length") ?? 0) > BODY_BYTES_MAX) return null;
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of c.req.raw.body ?? []) {
    bytes += piece.byteLength;
    if (bytes > BODY_BYTES_MAX) return null;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

/** Parses JSON; undefined: the text is none. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const idOf = (c: Context): string => c.req.param("id") ?? "";

/** Wraps a handler: it is called only for a token with the scope, and within the allowance of the token's user. */
function allowed(facts: AppFacts, scope: Scope, handler: (c: Context, token: TokenRecord) => Promise<Response>) {
  return async (c: Context): Promise<Response> => {
    const now_ms = facts.now_ms();
    const [, text] = /^Bearer +(\S+)$/i.exec(c.req.header("authorization") ?? "") ?? [];
    if (text === undefined) return unauthorized(c, "a token is needed: Authorization: Bearer TOKEN (partita token create)");
    const admitted = admit(facts.tokens(), text, hashOf, Math.floor(now_ms / 1000));
    if ("fault" in admitted) return unauthorized(c, `the token is ${admitted.fault}`);
    if (!admitted.token.scopes.includes(scope)) return answer(c, problem(403, `the token has no scope ${scope}`));
    if (admitted.token.user !== facts.submitter.user)
      return answer(c, problem(403, `pbs_web works as ${facts.submitter.user}, and the token is one of another user`));
    const wait_s = facts.allowance.take(admitted.token.user, now_ms);
    if (wait_s > 0) {
      c.header("Retry-After", String(wait_s));
      return answer(c, problem(429, "too many requests of this user"));
    }
    return handler(c, admitted.token);
  };
}

function unauthorized(c: Context, detail: string): Response {
  c.header("WWW-Authenticate", "Bearer");
  return answer(c, problem(401, detail));
}

const isProblem = (value: unknown): value is Problem =>
  typeof value === "object" && value !== null && "status" in value && "detail" in value;

/** Writes a value as JSON with an ETag, or a problem. */
function answer(c: Context, value: unknown): Response {
  if (isProblem(value)) {
    if (value.status === 503) c.header("Retry-After", "1");
    return c.body(JSON.stringify(value), value.status as 400, { "Content-Type": "application/problem+json", "Cache-Control": "no-store" });
  }
  const text = JSON.stringify(value);
  const etag = `"${createHash("sha256").update(text).digest("base64url").slice(0, 27)}"`;
  const headers = { ETag: etag, "Cache-Control": "private, no-cache" };
  const known = (c.req.header("if-none-match") ?? "").split(",").map((each) => each.trim().replace(/^W\//, ""));
  return known.includes(etag) || known.includes("*")
    ? c.body(null, 304, headers)
    : c.body(text, 200, { ...headers, "Content-Type": "application/json" });
}

/** What an exception means for the client. Only faults of our own are written to the log. */
function faultProblem(error: unknown, note: (text: string) => void): Problem {
  if (nameOf(error) === "ServerUnreachable") return problem(503, "the server of the complex does not answer");
  if (nameOf(error) === "TimeoutError") return problem(503, "the server of the complex did not answer in time");
  if (isNotRunning(error)) return problem(503, "the server of the complex is not running");
  note(stackOf(error));
  return problem(500, "a fault of pbs_web; its log says more");
}
