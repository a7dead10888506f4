// pbs_web beside a complex (docs/web.md): requests with curl's means, tokens that `partita token` makes. About 5 s.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { z } from "zod";
import { type Complex, startComplex, until } from "../complex.ts";

let complex: Complex;
let base: string;
let token: string;

const partita = (...args: readonly string[]): string => complex.must("partita", [...args, "--home", complex.home]).trim();

before(async () => {
  complex = await startComplex();
  base = /http:\S+/.exec(partita("web", "start", "--port", "0"))?.[0] ?? "";
  token = partita("token", "create", "--scope", "read,submit", "--days", "1");
});
after(async () => {
  if (complex === undefined) return;
  complex.run("partita", ["web", "stop", "--home", complex.home]);
  await complex.stop();
});

type Answered = { readonly status: number; readonly body: Record<string, unknown>; readonly headers: Headers };

async function call(path: string, options: RequestInit & { readonly token?: string | null } = {}): Promise<Answered> {
  const used = options.token === undefined ? token : options.token;
  const headers = { ...(used === null ? {} : { Authorization: `Bearer ${used}` }), ...(options.headers as object) };
  const response = await fetch(`${base}${path}`, { ...options, headers });
  const text = await response.text();
  return { status: response.status, body: text === "" ? {} : JSON.parse(text), headers: response.headers };
}

const idsOf = ({ body }: Answered): readonly string[] => (body["items"] as { id: string }[]).map(({ id }) => id);

test("jobs are listed with fields, filters and pages, and shown one by one", async () => {
  complex.qmgr("set server scheduling=False");
  const ids = [1, 2, 3].map((priority) => complex.submit(["-p", String(priority), "--", "/bin/true"]));
  const page = await call("/api/v1/jobs?limit=2&fields=Priority,job_state");
  assert.deepEqual(page.body, {
    items: ids.slice(0, 2).map((id, at) => ({ id, attributes: { job_state: "Q", Priority: at + 1 } })),
    next_cursor: ids[1],
  });
  assert.deepEqual(idsOf(await call(`/api/v1/jobs?limit=2&cursor=${ids[1]}`)), [ids[2]]);
  assert.deepEqual(idsOf(await call("/api/v1/jobs?Priority=ge:2&job_state=Q&queue=workq")), ids.slice(1));
  assert.deepEqual(idsOf(await call("/api/v1/jobs?job_state=R")), []);
  const { body } = await call(`/api/v1/jobs/${ids[0]}`);
  assert.equal((body["attributes"] as Record<string, unknown>)["queue"], "workq");
  assert.equal((await call("/api/v1/jobs?queue=nowhere")).status, 400);
});

test("nodes, queues, schedulers, reservations and explanations are shown", async () => {
  assert.equal(idsOf(await call("/api/v1/nodes?state=free")).length, 1);
  assert.deepEqual(idsOf(await call("/api/v1/queues?fields=enabled")), ["workq"]);
  assert.deepEqual(idsOf(await call("/api/v1/schedulers")), ["default"]);
  assert.deepEqual(idsOf(await call("/api/v1/reservations")), []);
  const id = complex.submit(["-l", "select=1:ncpus=1", "--", "/bin/true"]);
  const explained = await call(`/api/v1/jobs/${id}/explain`);
  assert.equal(explained.status, 200, JSON.stringify(explained.body));
});

test("an answer that has not changed is not sent again", async () => {
  const first = await call("/api/v1/queues?fields=enabled");
  const etag = first.headers.get("etag") ?? "";
  assert.equal((await call("/api/v1/queues?fields=enabled", { headers: { "If-None-Match": etag } })).status, 304);
  complex.qmgr("set queue workq enabled=False");
  assert.equal((await call("/api/v1/queues?fields=enabled", { headers: { "If-None-Match": etag } })).status, 200);
  complex.qmgr("set queue workq enabled=True");
});

test("requests without a right, and for what is not there, are refused as problems", async () => {
  const narrow = partita("token", "create", "--scope", "submit");
  const revoked = partita("token", "create", "--scope", "read");
  partita("token", "revoke", revoked.split("_")[1] ?? "");
  const rows: readonly [path: string, token: string | null, status: number][] = [
    ["/api/v1/jobs", null, 401],
    ["/api/v1/jobs", "nonsense", 401],
    ["/api/v1/jobs", revoked, 401],
    ["/api/v1/jobs", narrow, 403],
    ["/api/v1/jobs/999999", token, 404],
    ["/api/v1/jobs/..%2f..%2fetc", token, 404],
    ["/api/v1/nodes/nowhere", token, 404],
    ["/api/v1/reservations/R9", token, 404],
    ["/api/v1/planets", token, 404],
    ["/api/v1/jobs?fields=x", token, 400],
  ];
  for (const [path, used, status] of rows) {
    const refused = await call(path, { token: used });
    assert.deepEqual([refused.status, refused.body["status"]], [status, status], `${path} ${JSON.stringify(refused.body)}`);
    assert.equal(refused.headers.get("content-type"), "application/problem+json");
  }
});

const JSON_TYPE = { "Content-Type": "application/json" };
const submit = (body: unknown, used = token) =>
  call("/api/v1/jobs", { method: "POST", headers: JSON_TYPE, body: JSON.stringify(body), token: used });

test("a job is submitted with its attributes and deleted; the same again is refused", async () => {
  const made = await submit({
    script: "#!/bin/sh\nexit 0\n",
    directory: complex.work(),
    attributes: { Job_Name: "of-web", Priority: 7, Rerunable: false, Resource_List: { ncpus: 1 }, Variable_List: "COLOUR=red" },
  });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const id = String(made.body["id"]);
  const { body } = await call(made.headers.get("location") ?? "");
  const attributes = body["attributes"] as Record<string, unknown>;
  assert.partialDeepStrictEqual(attributes, {
    Job_Name: "of-web",
    Priority: 7,
    Rerunable: false,
    Resource_List: { ncpus: "1" },
    job_state: "Q",
  });
  assert.match(String(attributes["Output_Path"]), new RegExp(`:${complex.work()}/of-web\\.o`));
  assert.match(JSON.stringify(attributes["Variable_List"]), /COLOUR=red/);
  assert.equal((await call(`/api/v1/jobs/${id}`, { method: "DELETE" })).status, 204);
  assert.equal((await call(`/api/v1/jobs/${id}`, { method: "DELETE" })).status, 404);
});

test("submissions that are malformed, too large or without a right are refused, and none becomes a job", async () => {
  const read = partita("token", "create", "--scope", "read");
  const before_them = idsOf(await call("/api/v1/jobs")).length;
  const script = "#!/bin/sh\n";
  const rows: readonly [body: unknown, status: number][] = [
    [{}, 400],
    [[], 400],
    [{ script, colour: "red" }, 400],
    [{ script, queue: "nowhere" }, 404],
    [{ script, directory: "relative" }, 400],
    [{ script, attributes: { nothing: 1 } }, 400],
    [{ script, attributes: { interactive: "True" } }, 400],
    [{ script, attributes: { Job_Owner: "root@localhost" } }, 403],
    [{ script, attributes: { Priority: 5000 } }, 400],
    [{ script, attributes: { Resource_List: { planets: 1 } } }, 400],
    [{ script: "x".repeat(5 * 1024 * 1024) }, 413],
  ];
  for (const [body, status] of rows) {
    const refused = await submit(body);
    assert.equal(refused.status, status, `${JSON.stringify(body).slice(0, 100)} ${JSON.stringify(refused.body)}`);
  }
  assert.equal((await submit({ script }, read)).status, 403);
  assert.equal((await call("/api/v1/jobs", { method: "POST", body: "{", headers: JSON_TYPE })).status, 400);
  assert.equal((await call("/api/v1/jobs", { method: "POST", body: JSON.stringify({ script }) })).status, 415);
  assert.equal(idsOf(await call("/api/v1/jobs")).length, before_them);
});

test("metrics need no token, count jobs and cycles, and name no user and no job", async () => {
  const scrape = async (): Promise<string> => (await fetch(`${base}/metrics`)).text();
  const id = complex.submit(["-N", "secret-name", "--", "/bin/true"]);
  const waiting = String(idsOf(await call("/api/v1/jobs?job_state=Q&limit=1000")).length);
  await until("the scrape that counts the new job", async () => (await scrape()).includes(`partita_jobs{state="queued"} ${waiting}\n`));
  const text = await scrape();
  assert.match(text, /^partita_server_up 1$/m);
  assert.match(text, /^partita_queue_jobs\{queue="workq",partition="[^"]*",state="queued"\} \d+$/m);
  assert.match(text, /^partita_scheduler_up\{scheduler="default"\} 1$/m);
  assert.match(text, /^partita_scheduler_cycles_total\{scheduler="default"\} \d+$/m);
  assert.match(text, /^partita_server_answer_seconds_count\{kind="queue-job"\} [1-9]/m);
  assert.ok(!text.includes("secret-name") && !text.includes(id));
});

test("drawn requests to every operation get answers of the described form, and no fault", async () => {
  const { body } = await call("/api/v1/openapi.json", { token: null });
  const api = body as unknown as Description;
  const schemaOf = (schema: object) =>
    z.fromJSONSchema({ ...schema, components: api.components } as Parameters<typeof z.fromJSONSchema>[0]);
  // References lead to the components of the description, so each schema gets them as definitions.
  const text = (schema: object): object => JSON.parse(JSON.stringify(schema).replaceAll("#/components/schemas/", "#/$defs/"));
  const known = new Map<object, z.ZodType>();
  const check = (schema: object, value: unknown, what: string): void => {
    if (!known.has(schema)) known.set(schema, schemaOf({ ...text(schema), $defs: text(api.components.schemas) }));
    const parsed = known.get(schema)?.safeParse(value);
    assert.ok(parsed?.success, `${what}: ${JSON.stringify(value)} ${parsed?.error}`);
  };
  const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const ids = [
    "1",
    "vm",
    "workq",
    "default",
    "R1",
    "..",
    "%00",
    "é",
    "9".repeat(300),
    ...idsOf(await call("/api/v1/jobs")),
    ...idsOf(await call("/api/v1/nodes")),
  ];
  const value = fc.oneof(
    fc.constantFrom("1", "Q", "workq", "True", "with", "only", "job_state", "ge:1", "ne:x", "free"),
    fc.string({ maxLength: 20 }),
  );
  const drawn = fc.record({
    operation: fc.constantFrom(...operations),
    id: fc.constantFrom(...ids),
    at: fc.array(fc.tuple(fc.nat(), value), { maxLength: 2 }),
    body: fc.oneof(
      fc.json(),
      fc
        .record({ script: fc.string({ maxLength: 9 }), queue: value, attributes: fc.dictionary(value, value) })
        .map((each) => JSON.stringify(each)),
    ),
  });
  const request = fc.asyncProperty(drawn, async ({ operation: { path, method, operation }, id, at, body: sent }) => {
    const parameters = (operation.parameters ?? []).filter((each) => each.in === "query");
    const query = new URLSearchParams();
    for (const [nth, each] of at) if (parameters.length > 0) query.append(parameters[nth % parameters.length]?.name ?? "", each);
    const url = `${path.replace("{id}", encodeURIComponent(id))}?${query}`;
    const posted = method === "post" ? { body: sent, headers: JSON_TYPE } : {};
    let answered = await call(url, { method: method.toUpperCase(), ...posted });
    while (answered.status === 429) answered = await call(url, { method: method.toUpperCase(), ...posted });
    assert.ok(answered.status < 500, `${method} ${url}: ${JSON.stringify(answered.body)}`);
    const { content } = operation.responses[answered.status] ?? operation.responses["default"] ?? {};
    for (const { schema } of Object.values(content ?? {})) check(schema, answered.body, `${method} ${url}`);
  });
  await fc.assert(request, { numRuns: 150 });
});

type Description = {
  readonly components: { readonly schemas: object };
  readonly paths: Record<string, Record<string, Operation>>;
};
type Operation = {
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly responses: Record<string, { readonly content?: Record<string, { readonly schema: object }> }>;
};

test("a second pbs_web does not start, and stop ends the first", async () => {
  assert.match(partita("web", "start", "--port", "0"), /runs already/);
  assert.match(partita("token", "list"), /read,submit/);
  partita("web", "stop");
  assert.equal(complex.run("partita", ["web", "status", "--home", complex.home]).status, 1);
  await assert.rejects(call("/api/v1/jobs"));
});
