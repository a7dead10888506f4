// Clusters of type oar: requests, recorded answers of OAR 2.5.9, faults, and a REST API that answers late, wrongly or not at all.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { ClusterSettings, JobBatch } from "#backends/contract/cluster.ts";
import { BackendError } from "#backends/contract/fault.ts";
import { failureText, type OarJob, readJobsPage, readOarstat, sightingOf, submittedIds } from "#backends/oar/answer.ts";
import { isOnlyGone, oarKind } from "#backends/oar/faults.ts";
import { identityHeaders, oarOptions, readSecrets } from "#backends/oar/options.ts";
import { arrayOf, idsSql, indexOf, jobsBody, liveSql, oarsubArgs } from "#backends/oar/request.ts";
import { openCluster } from "#backends/open-cluster.ts";

const SETTINGS: ClusterSettings = { name: "luke", type: "oar", grid: "g1", options: {}, user: "anna", state_dir: "/s" };
const BATCH: JobBatch = {
  tag: "g1.luke.7",
  isFirst: true,
  owner: null,
  jobs: [0, 1].map((n) => ({
    exec: ["./run"],
    parameters: [`it's "${n}" $HOME`],
    env: { CIGRI_JOB_ID: `${n}` },
    directory: "~/x",
    output: null,
  })),
  resources: { kind: "hierarchy", resources: "/nodes=2/core=4", cpus: 8 },
  walltime_s: 5400,
  best_effort: true,
  project: null,
  queue: null,
  job_type: null,
  properties: "gpu='YES'",
};

test("a batch becomes a held array; oarsub and the API are asked for the same", () => {
  const array = arrayOf(BATCH, "night");
  const options = {
    hold: true,
    name: "g1.luke.7",
    directory: "/",
    stdout: "/dev/null",
    stderr: "/dev/null",
    resource: "/nodes=2/core=4,walltime=1:30:0",
    type: ["besteffort"],
    queue: "night",
    property: "gpu='YES'",
  };
  assert.deepEqual(array.options, options);
  assert.deepEqual(jobsBody(array), { ...options, hold: "1", command: "/bin/sh -c", param_file: array.param_file });
  assert.deepEqual(oarsubArgs(array, "/p").slice(-3), ["--property=gpu='YES'", "--array-param-file=/p", "/bin/sh -c"]);
  assert.ok(oarsubArgs(array, "/p").includes("--hold"));
});

test("O1, O2: the node's shell runs each line with its own words and variables, and the line ends with the index", () => {
  const dir = mkdtempSync(join(tmpdir(), "partita-oar-test-"));
  try {
    const argv = ["/bin/sh", "-c", 'printf "%s|" "$PWD" "$A" "$CIGRI_NODE_FILE" "$@"; exit 7', "x"];
    const jobs = [0, 1].map((n) => ({
      exec: argv,
      parameters: [`a'b "${n}"`, "é$(id)"],
      env: { A: `1\n${n}` },
      directory: "{HOME}",
      output: null,
    }));
    const { command, param_file } = arrayOf({ ...BATCH, jobs }, null);
    for (const [n, line] of param_file.trimEnd().split("\n").entries()) {
      assert.equal(indexOf(`${command} ${line}`), n);
      const printed = (() => {
        try {
          execFileSync("/bin/bash", ["-c", `${command} ${line}`], { env: { PATH: "/usr/bin:/bin", HOME: dir, OAR_NODE_FILE: "/n" } });
        } catch (error) {
          const { status, stdout } = error as { readonly status: number; readonly stdout: Buffer };
          return `${status} ${stdout.toString()}`;
        }
      })();
      assert.equal(printed, `7 ${dir}|1\n${n}|/n|a'b "${n}"|é$(id)|`);
    }
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("O3: what a shell would read in options, too long lines and a select are refused", () => {
  const refused: readonly Partial<JobBatch>[] = [
    { properties: "a=`id`" },
    { queue: 'x"y' },
    { job_type: "$x" },
    { project: "a\nb" },
    { resources: { kind: "hierarchy", resources: "/core=\\1", cpus: 1 } },
    { resources: { kind: "select", select: "1", place: null, cpus: 1 } },
    { jobs: [{ exec: ["x"], parameters: ["x".repeat(100_000)], env: {}, directory: "/", output: null }] },
  ];
  for (const part of refused)
    assert.throws(() => arrayOf({ ...BATCH, ...part }, null), { kind: "impossible" }, JSON.stringify(part).slice(0, 80));
  assert.equal(indexOf("/bin/sh -c 'echo x' 3"), null);
  assert.throws(() => idsSql(["1) OR (1=1"]), RangeError);
  assert.match(liveSql("g1", "luke"), /^job_name LIKE 'g1\.luke\.%' AND state IN \('Waiting','Hold',/);
});

/** Jobs as `oarstat -J -f` described them. */
const job = (more: object): object => ({
  ...{
    Job_Id: 11,
    name: "g1.luke.7",
    owner: "batch1",
    state: "Terminated",
    exit_code: 0,
    startTime: 100,
    stopTime: 109,
    array_id: 11,
    events: [],
  },
  ...{
    command: "/bin/sh -c 'eval \"$(x)\"' 3",
    message: "R=1,W=0:5:0",
    assigned_network_address: ["127.0.0.1"],
    assigned_resources: [1, 2],
  },
  ...more,
});
const events = (...types: readonly string[]) =>
  types.map((type) => ({ type, description: "", to_check: "NO", job_id: 11, event_id: 1, date: 1 }));

const ENDINGS: readonly [what: string, more: object, says: readonly unknown[]][] = [
  ["a success", {}, ["ended", "exit", 0, 9]],
  ["an exit code", { exit_code: 67 << 8 }, ["ended", "exit", 67, 9]],
  ["a signal of its own", { exit_code: 9 }, ["ended", "exit", 137, 9]],
  [
    "the limit",
    { state: "Error", exit_code: null, events: events("FRAG_JOB_REQUEST", "WALLTIME", "SEND_KILL_JOB") },
    ["ended", "walltime", null, 9],
  ],
  ["a deletion", { state: "Error", exit_code: null, events: events("FRAG_JOB_REQUEST", "SEND_KILL_JOB") }, ["ended", "killed", null, 9]],
  [
    "a local user",
    { state: "Error", exit_code: null, events: events("BESTEFFORT_KILL", "FRAG_JOB_REQUEST") },
    ["ended", "killed", null, 9],
  ],
  ["no known code", { exit_code: null }, ["ended", "lost", null, 9]],
  ["a job that runs", { state: "Running", exit_code: null, stopTime: 0 }, ["running", null, null, null]],
  ["a job that ends", { state: "Finishing", exit_code: null, stopTime: 0 }, ["running", null, null, null]],
  ["a held job", { state: "Hold", exit_code: null, startTime: 0, stopTime: 0 }, ["queued", null, null, null]],
  ["an unknown state", { state: "Dreaming", exit_code: null }, ["unknown", null, null, null]],
];
for (const [what, more, says] of ENDINGS)
  test(`the end of a job: ${what}`, () => {
    const [read] = readOarstat(JSON.stringify({ "11": job(more) }));
    assert.ok(read !== undefined);
    const { state, ending, exit_code, run_s, tag, index, user, host } = sightingOf(read, read.index ?? -1);
    assert.deepEqual([state, ending, exit_code, run_s], says);
    assert.deepEqual([tag, index, user, host], ["g1.luke.7", 3, "batch1", "127.0.0.1"]);
  });

test("the API describes the same job in other words", () => {
  const item = {
    ...{
      id: 11,
      name: "g1.luke.7",
      owner: "batch1",
      state: "Error",
      exit_code: null,
      start_time: 100,
      stop_time: 109,
      array_id: 11,
      array_index: null,
    },
    ...{
      command: "/bin/sh -c 'eval \"$(x)\"' 3",
      message: "m",
      events: events("WALLTIME"),
      nodes: [{ network_address: "127.0.0.1", status: "assigned" }],
    },
    resources: [{ id: 1 }, { id: 2 }],
  };
  const [read] = readJobsPage(JSON.stringify({ total: 1, offset: 0, items: [item] }));
  const [other] = readOarstat(JSON.stringify({ "11": job({ state: "Error", exit_code: null, events: events("WALLTIME"), message: "m" }) }));
  assert.deepEqual(read, other satisfies OarJob | undefined);
});

test("lists that are not whole are no lists", () => {
  assert.deepEqual(readOarstat(""), []);
  assert.throws(() => readOarstat('{"1": {'), { kind: "transient" });
  assert.throws(() => readOarstat('{"1": {"state": "Running"}}'), /oarstat answered in a form that is not understood/);
  assert.throws(() => readJobsPage(JSON.stringify({ total: 3, items: [] })), /listed 0 of 3/);
  assert.throws(() => readJobsPage("<html>"), { kind: "transient" });
});

test("ids, faults and their kinds", () => {
  assert.deepEqual(submittedIds("[ADMISSION RULE] x\nSimple array job submission is used\nOAR_JOB_ID=2\nOAR_JOB_ID=3\nOAR_ARRAY_ID=2\n"), [
    "2",
    "3",
  ]);
  assert.deepEqual(submittedIds("OAR_JOB_ID=-5\n"), []);
  const kinds: readonly (readonly [text: string, kind: string])[] = [
    ["There are not enough resources for your request", "impossible"],
    ['Bad resource request (ERROR:  column "core" does not exist', "impossible"],
    ["DBI connect failed: could not connect to server: Connection refused", "transient"],
    ["Permission denied: A suitable authentication must be done before posting jobs", "configuration"],
    ["[ADMISSION RULE] ERROR too many jobs", "limit"],
    ["something new", "transient"],
  ];
  for (const [text, kind] of kinds) assert.equal(oarKind(text), kind, text);
  assert.ok(isOnlyGone("Deleting the job = 9 ...ERROR.\nCannot frag 9 ; You are not the right user.\nThe job(s) [ 7 ] will be deleted"));
  assert.ok(isOnlyGone("/!\\ Cannot resume 9999 : this job does not exist.\n"));
  assert.ok(!isOnlyGone("could not connect to server: error"));
  assert.ok(!isOnlyGone(""));
  assert.equal(failureText('{"code":400,"title":"Bad query","message":"no room\\nCmd:\\noarsub secret"}'), "Bad query: no room");
});

test("options and credentials", () => {
  const options = (more: Readonly<Record<string, string>>) => oarOptions({ ...SETTINGS, options: more });
  assert.equal(options({ url: "https://h/oarapi/" }).url, "https://h/oarapi");
  assert.equal(options({ url: "http://h/o", credentials: "/c" }).auth, "password");
  for (const bad of [
    { url: "ftp://x" },
    { url: "http://u:p@h/" },
    { auth: "jwt", url: "http://h" },
    { auth: "ident" },
    { url: "http://h", bin: "/b" },
    { colour: "red" },
    { auth: "magic", url: "http://h" },
  ])
    assert.throws(() => options(bad), { kind: "configuration" }, JSON.stringify(bad));
  const secrets = readSecrets("# users\nanna  open sesame \n\n* token\n");
  assert.deepEqual(identityHeaders("jwt", "bob", secrets), { authorization: "Bearer token" });
  assert.deepEqual(identityHeaders("password", "anna", secrets), { authorization: `Basic ${btoa("anna:open sesame")}` });
  assert.deepEqual(identityHeaders("ident", "anna", new Map()), { "X-REMOTE-IDENT": "anna" });
  assert.deepEqual([identityHeaders("ident", null, new Map()), identityHeaders("none", "anna", new Map())], [{}, {}]);
  assert.throws(() => identityHeaders("password", "bob", readSecrets("anna x")), { kind: "configuration" });
  assert.throws(() => readSecrets("anna"), /line 1/);
});

type Answer = { readonly status: number; readonly body: unknown } | "silence";
/** An API that gives the answers of a function. */
async function api(t: TestContext, answer: (method: string, path: string, request: IncomingMessage) => Answer) {
  const server = createServer((request, response) => {
    const given = answer(request.method ?? "", (request.url ?? "").replace("/oarapi", ""), request);
    if (given === "silence") return;
    response.writeHead(given.status, { "content-type": "application/json" });
    response.end(typeof given.body === "string" ? given.body : JSON.stringify(given.body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const dir = mkdtempSync(join(tmpdir(), "partita-oar-test-"));
  writeFileSync(join(dir, "credentials"), "anna sesame\n", { mode: 0o600 });
  t.after(() => {
    server.closeAllConnections();
    server.close();
    rmSync(dir, { recursive: true });
  });
  const { port } = server.address() as AddressInfo;
  return openCluster({
    ...SETTINGS,
    options: { url: `http://127.0.0.1:${port}/oarapi`, credentials: join(dir, "credentials"), timeout: "1" },
  });
}

const live = (id: number, index: number, array_id: number, more: object = {}) => ({
  ...{ id, name: "g1.luke.7", owner: "anna", state: "Hold", array_id, command: `/bin/sh -c 'eval x' ${index}` },
  ...more,
});

test("C1: a submission whose answer never came is looked for, and a second array with its tag is deleted", async (t) => {
  const deleted: string[] = [];
  const jobs = [live(20, 0, 20), live(21, 1, 20), live(31, 1, 30), live(30, 0, 30), live(40, 0, 40, { owner: "bob" })];
  const cluster = await api(t, (method, path) => {
    if (method === "POST" && path === "/jobs.json") return "silence";
    const [, id] = /^\/jobs\/(\d+)\/deletions\/new\.json$/.exec(path) ?? [];
    if (method === "POST" && id !== undefined) {
      deleted.push(id);
      return { status: 202, body: {} };
    }
    const ids = new URL(`http://x${path}`).searchParams.get("ids")?.split(":");
    const items = jobs.filter((each) => ids === undefined || ids.includes(String(each.id)));
    return { status: 200, body: { total: items.length, items } };
  });
  await assert.rejects(cluster.submit(BATCH), (error) => error instanceof BackendError && error.uncertain && error.kind === "transient");
  const found = await cluster.submit({ ...BATCH, isFirst: false, owner: { name: "anna", uid: 1, gid: 1, groups: [] } });
  assert.deepEqual(
    found.map(({ id, index, state }) => [id, index, state]),
    [
      ["20", 0, "queued"],
      ["21", 1, "queued"],
    ],
  );
  assert.deepEqual(deleted.sort(), ["30", "31"]);
});

test("C2, C4, C5: an API that answers nonsense, refuses, or redirects gives an error without the secret", async (t) => {
  const answers: readonly (readonly [answer: Answer, kind: string])[] = [
    [{ status: 200, body: "<html>busy</html>" }, "transient"],
    [{ status: 200, body: { total: 2, items: [live(1, 0, 1)] } }, "transient"],
    [{ status: 200, body: { total: 1, items: [{ id: "x" }] } }, "transient"],
    [{ status: 401, body: "<title>401 Unauthorized</title> anna:sesame?" }, "configuration"],
    [{ status: 302, body: "" }, "transient"],
    [{ status: 500, body: { title: "Oar server error", message: "could not connect" } }, "transient"],
    ["silence", "transient"],
  ];
  let now: Answer = "silence";
  const cluster = await api(t, () => now);
  for (const [answer, kind] of answers) {
    now = answer;
    await assert.rejects(cluster.list(), (error) => error instanceof BackendError && error.kind === kind, JSON.stringify(answer));
  }
});

test("the owner is named to the API, and jobs that are gone are no error", async (t) => {
  const seen: (string | undefined)[] = [];
  const cluster = await api(t, (_, path, { headers }) => {
    seen.push(headers.authorization);
    if (path.includes("/77/"))
      return {
        status: 400,
        body: { title: "Oar error", message: "Oar command exited with status 256: /!\\ Cannot resume 77 : this job does not exist.\n" },
      };
    return { status: 400, body: { title: "Oar error", message: "could not connect to the database" } };
  });
  const ref = (id: string) => ({ tag: "g1.luke.7", index: 0, id, user: "anna" });
  await cluster.release([ref("77")]);
  await assert.rejects(cluster.release([ref("78")]), { kind: "transient" });
  assert.deepEqual(new Set(seen), new Set([`Basic ${btoa("anna:sesame")}`]));
});
