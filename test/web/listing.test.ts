// Lists of the REST interface: queries, filters and pages.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { JOBS, KINDS } from "#web/api/kinds.ts";
import { type Listing, meets, pageOf, parseListing, selectRequest } from "#web/api/listing.ts";
import { shown } from "#web/api/shown.ts";

const NODES = KINDS.find(({ path }) => path === "nodes") ?? JOBS;
const query = (text: string): [string, string][] => [...new URLSearchParams(text)];
const parsed = (kind: typeof JOBS, text: string): Listing => {
  const listing = parseListing(kind, query(text));
  assert.ok(!("status" in listing), JSON.stringify(listing));
  return listing;
};

test("filters of jobs become the request of qselect", () => {
  const rows: readonly [query: string, request: object][] = [
    ["", { criteria: [] }],
    ["job_state=Q,H&queue=workq", { criteria: [], states: "QH", destination: "workq" }],
    ["user=anna", { criteria: [{ name: "User_List", op: "eq", value: "anna" }] }],
    ["priority=ge:5", { criteria: [{ name: "Priority", op: "ge", value: "5" }] }],
    ["Job_Name=eq:ge:5", { criteria: [{ name: "Job_Name", op: "eq", value: "ge:5" }] }],
    ["Job_Name=xx:5&history=only", { criteria: [{ name: "Job_Name", op: "eq", value: "xx:5" }], history: "only" }],
    ["Resource_List.ncpus=4", { criteria: [{ name: "Resource_List", resource: "ncpus", op: "eq", value: "4" }] }],
    ["queue=ne:workq", { criteria: [{ name: "queue", op: "ne", value: "workq" }] }],
  ];
  for (const [text, request] of rows) assert.deepEqual(selectRequest(parsed(JOBS, text)), { kind: "select-jobs", ...request }, text);
});

test("a query that is not understood is refused with a reason", () => {
  const rows: readonly [path: "jobs" | "nodes", query: string, reason: RegExp][] = [
    ["jobs", "limit=0", /limit/],
    ["jobs", "limit=1001", /limit/],
    ["jobs", "limit=1e9", /limit/],
    ["jobs", "cursor=x", /cursor/],
    ["jobs", "cursor=", /cursor/],
    ["jobs", "fields=nothing", /no attribute "nothing"/],
    ["jobs", "colour=red", /no attribute "colour"/],
    ["jobs", "queue=a&queue=b", /given twice/],
    ["jobs", "Resource_List=4", /needs a resource/],
    ["jobs", "queue.x=4", /has no resources/],
    ["jobs", "history=yes", /history/],
    ["jobs", `Job_Name=${"x".repeat(2000)}`, /characters/],
    ["nodes", "history=with", /history/],
    ["nodes", "pcpus=ge:4", /only jobs/],
  ];
  for (const [path, text, reason] of rows) {
    const fault = parseListing(path === "jobs" ? JOBS : NODES, query(text));
    assert.ok("status" in fault && fault.status === 400, text);
    assert.match(fault.detail, reason);
  }
});

test("other objects are filtered by the text of their attributes", () => {
  const item = { id: "n1", attrs: { state: "free", resources_available: { ncpus: "4" }, queue_list: ["a", "b"] } };
  const rows: readonly [query: string, met: boolean][] = [
    ["state=free", true],
    ["state=ne:free", false],
    ["state=free&resources_available.ncpus=4", true],
    ["resources_available.mem=4", false],
    ["resources_available.mem=ne:4", true],
    ["comment=x", false],
  ];
  for (const [text, met] of rows) assert.equal(meets(parsed(NODES, text).filters, item), met, text);
});

test("pages list every job that is there all the time exactly once, in order, whatever comes and goes", () => {
  const id = fc.integer({ min: 1, max: 60 }).map((seq) => `${seq}.svr`);
  fc.assert(
    fc.property(fc.uniqueArray(id), fc.array(fc.uniqueArray(id)), fc.integer({ min: 1, max: 7 }), (steady, comings, limit) => {
      const listed: string[] = [];
      let cursor: string | null = null;
      for (let round = 0; ; round++) {
        const there = [...new Set([...steady, ...(comings[round] ?? [])])];
        const page = pageOf({ ...parsed(JOBS, `limit=${limit}`), cursor }, there);
        assert.ok(page.ids.length <= limit);
        listed.push(...page.ids);
        cursor = page.next_cursor;
        if (cursor === null) break;
      }
      assert.equal(new Set(listed).size, listed.length);
      assert.deepEqual(
        listed,
        [...listed].sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10)),
      );
      for (const each of steady) assert.ok(listed.includes(each), each);
    }),
  );
});

test("an array comes before its subjobs, and subjobs in the order of their indices", () => {
  const ids = ["3[10].s", "10.s", "3[2].s", "2.s", "3[].s"];
  assert.deepEqual(pageOf(parsed(JOBS, ""), ids).ids, ["2.s", "3[].s", "3[2].s", "3[10].s", "10.s"]);
});

test("numbers and booleans have their JSON types, and what does not fit stays a text", () => {
  const attrs = {
    Priority: "5",
    ctime: "1700000000",
    Rerunable: "True",
    Job_Name: "7",
    Resource_List: { ncpus: "1" },
    run_count: "99999999999999999999",
  };
  assert.deepEqual(shown(JOBS.table, { id: "1.s", attrs }).attributes, {
    ...attrs,
    Priority: 5,
    ctime: 1_700_000_000,
    Rerunable: true,
  });
});
