// What a run may do with files of other hosts: exactly what its job states, while it runs, and where it runs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { grantOf, type NamedHost } from "#server/moms/job-files.ts";

const JOB = {
  id: "7.head",
  attrs: {
    job_state: "R",
    substate: 42,
    run_count: 3,
    stime: 1,
    exec_host: "n1/0",
    exec_vnode: "(n1:ncpus=1)",
    euser: "alice",
    egroup: "staff",
    Output_Path: "login1.example.org:/home/alice/out",
    Error_Path: "n2:/scratch/err",
    stagein: ["/in@login1:data/*.dat", "/b@n2:/b"],
    stageout: ["/r*@login1:results/", "/tree@head:/tree"],
  },
};
type Kernel = Parameters<typeof grantOf>[0];
function kernel(attrs: object = {}, id = JOB.id, moms: readonly (readonly [string, object])[] = [["n1", { address: "10.0.0.1" }]]): Kernel {
  const job = { ...JOB, id, attrs: { ...JOB.attrs, ...attrs } };
  const by_host = new Map(moms.map(([name, hello]) => [name, { hello }]));
  return { state: { jobs: new Map([[id, job]]) }, moms: { by_host }, config: { host: "head", machine: "head.example.org" } } as never;
}
const host = (name: string, is_server = false): NamedHost => ({ host: name, is_server });
const RUN = { job: "7.head", run_count: 3 };
const NOTHING = "job 7.head does not run on n1";

test("each host gives and takes what the job states for it", () => {
  const on = (name: NamedHost) => grantOf(kernel(), RUN, host("n1"), name);
  const who = { user: "alice", group: "staff" };
  assert.deepEqual(on(host("login1")), {
    ...who,
    put: ["/home/alice/out", "results/"],
    names: [["7.head.OU"], ["r*"]],
    get: ["data/*.dat"],
  });
  assert.deepEqual(on(host("n2")), { ...who, put: ["/scratch/err"], names: [["7.head.ER"]], get: ["/b"] });
  assert.deepEqual(on(host("head", true)), { ...who, put: ["/tree"], names: [["tree"]], get: [] });
  assert.deepEqual(on(host("n3")), { ...who, put: [], names: [], get: [] });
});

test("only while this run of the job is there", () => {
  const ask = (attrs: object, run = RUN, from = host("n1")) => grantOf(kernel(attrs), run, from, host("login1"));
  assert.equal(ask({}, { ...RUN, run_count: 2 }), NOTHING, "an earlier run");
  assert.equal(ask({}, { ...RUN, job: "8.head" }), "job 8.head does not run on n1");
  assert.equal(ask({}, RUN, host("n2")), "job 7.head does not run on n2", "a host that has another part in the job");
  assert.equal(ask({ exec_host: "n2/0+n1/0" }), NOTHING, "a sister");
  assert.equal(ask({ job_state: "Q", substate: 10 }), NOTHING);
  assert.equal(ask({ job_state: "F", substate: 92 }), NOTHING, "a call that is repeated after the end");
  for (const [job_state, substate] of [
    ["R", 41],
    ["S", 43],
    ["E", 50],
  ])
    assert.equal(typeof ask({ job_state, substate }), "object", `${job_state} ${substate}`);
});

test("the server's own host runs the job if its mom has no address of another one", () => {
  const ask = (moms: readonly (readonly [string, object])[]) => grantOf(kernel({}, JOB.id, moms), RUN, host("head", true), host("login1"));
  assert.equal(typeof ask([["n1", {}]]), "object");
  assert.equal(ask([["n1", { address: "10.0.0.1" }]]), "job 7.head does not run on head");
  assert.equal(ask([]), "job 7.head does not run on head");
  const own = kernel({ exec_host: "head/0", exec_vnode: "(head:ncpus=1)" }, JOB.id, []);
  assert.equal(
    typeof grantOf(own, RUN, host("head", true), host("login1")),
    "object",
    "its mom has not come back to a server that was just started",
  );
});

test("the index of a subjob is put into the path of its output", () => {
  const id = "7[12].head";
  const granted = grantOf(kernel({ Output_Path: "n2:/out.^array_index^" }, id), { job: id, run_count: 3 }, host("n1"), host("n2"));
  const names = [["7\\[12].head.OU"], ["7\\[12].head.ER"]];
  assert.deepEqual(granted, { user: "alice", group: "staff", put: ["/out.12", "/scratch/err"], names, get: ["/b"] });
});

test("files that go to one directory have the names of all of them", () => {
  const attrs = { Output_Path: "n2:/d/", Error_Path: "n2:/d/", stageout: ["/r*@n2:/d/", "/x/@n2:/d/", "/s/r*@n2:/d/"] };
  const granted = grantOf(kernel(attrs), RUN, host("n1"), host("n2"));
  assert.ok(typeof granted === "object");
  assert.deepEqual([granted.put, granted.names], [["/d/"], [["7.head.OU", "7.head.ER", "r*", "x"]]]);
});
