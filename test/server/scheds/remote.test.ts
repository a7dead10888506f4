// Schedulers on other hosts, as the server sees them: dialled, connected, cut off, unreachable (docs/schedulers.md).

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Explanation } from "#protocol/explanation.ts";
import type { Snapshot } from "#protocol/sched-link.ts";
import { whyNotSched } from "#server/scheds/remote.ts";
import { isRemote, schedsOf } from "#server/state/partitions.ts";
import {
  ALICE,
  addHost,
  addJob,
  addQueue,
  addVnode,
  advance,
  askOk,
  cycle,
  type Harness,
  HOST,
  harness,
  logsOf,
  outcome,
  ROOT,
  restart,
  sched,
  schedHello,
  schedLost,
  settle,
  stateOf,
} from "../harness.ts";
import { session, shown } from "../requests/qmgr.ts";

const LINK = 5;
const REFUSED = "no scheduler s1 listens on ports 15050 to 15069 of node7";

/** The hello of the scheduler that the server has dialled. */
function farHello(h: Harness, link = LINK, host = "node7", name = "s1", more: { readonly user?: string } = {}): void {
  h.driver.schedHello(link, { name, pid: 0, version: "x", pongs: true, ...more }, host);
  settle(h);
}

function unreached(h: Harness, why = REFUSED): void {
  h.driver.schedUnreached("s1", why);
  settle(h);
}

/** Partition p1 with a queue pq and a vnode, and its scheduler s1 on host node7. The default scheduler is here. */
async function world(...more: readonly string[]): Promise<Harness> {
  const h = harness();
  addHost(h, "n1");
  schedHello(h, 1);
  cycle(h, 1);
  addVnode(h, "v1", { partition: "p1" });
  addQueue(h, "pq", { partition: "p1" });
  await session(h, [["create sched s1 partition=p1"], ["set sched s1 sched_host=node7"], ["set sched s1 scheduling=True"]]);
  for (const line of more) await session(h, [[line]]);
  return h;
}

const actions = (h: Harness, ...kinds: readonly string[]): string[] =>
  h.actions.flatMap((action) => (kinds.includes(action.kind) && "sched" in action && action.sched === "s1" ? [action.kind] : []));
const attr = (h: Harness, name: string): unknown => shown(h, "sched", "s1", name);
const sentTo = (h: Harness, link: number): string[] => h.to_scheds.flatMap((frame) => (frame.link === link ? [frame.type] : []));
function snapshotTo(h: Harness, to: number): Snapshot {
  const frame = h.to_scheds.find(({ link, type }) => link === to && type === "sched-snapshot");
  assert.ok(frame !== undefined, "no snapshot was sent");
  return frame.data as Snapshot;
}
const refusalOf = (h: Harness, link: number): unknown =>
  h.to_scheds.find((frame) => frame.link === link && frame.type === "sched-refused")?.data;

test("a scheduler on another host is dialled when it is enabled, and works like a local one", async () => {
  const h = await world();
  assert.deepEqual(actions(h, "start-sched"), ["start-sched"]);
  assert.deepEqual([attr(h, "sched_host"), attr(h, "sched_port"), attr(h, "state")], ["node7", undefined, "down"]);
  const job = addJob(h, { queue: "pq" });
  assert.deepEqual(
    logsOf(h, `Server@${HOST}`).filter((text) => text.includes("Unable")),
    [],
    "nobody has failed yet",
  );
  farHello(h);
  assert.deepEqual([sentTo(h, LINK), attr(h, "state")], [["sched-snapshot", "sched-cycle"], "scheduling"]);
  assert.ok(logsOf(h, "s1").includes("connected on host node7"));
  const verdicts = cycle(h, LINK, [{ kind: "run", job, exec_vnode: "(v1:ncpus=1)" }]);
  assert.deepEqual([verdicts, stateOf(h, job), attr(h, "state")], [[{ ok: true }], "R 41", "idle"]);
});

test("sched_port is listed only when set, and has no meaning for a scheduler of this host", async () => {
  const h = await world("set sched s1 sched_port=15077");
  assert.equal(attr(h, "sched_port"), "15077");
  await session(h, [["unset sched s1 sched_port"]]);
  assert.equal(attr(h, "sched_port"), undefined);
  await session(h, [["create sched s2 partition=p2"], ["set sched s2 sched_port=15078"], ["set sched s2 scheduling=True"]]);
  schedHello(h, 8, "s2");
  assert.equal(shown(h, "sched", "s2", "state"), "scheduling");
  await session(h, [["set sched s2 sched_port=70000", "15014 Illegal attribute or resource value"]]);
});

test("a scheduler on another host that does not run as its sched_user is not ended, and the log says so", async () => {
  const h = await world("set sched s1 sched_user=alice");
  farHello(h);
  const told = (user: string, present: string): boolean =>
    logsOf(h, "s1").includes(`sched_user is ${user}, but the scheduler runs ${present} on host node7: restart it there`);
  assert.ok(told("alice", "as the user who started it"), "a scheduler of an earlier release does not say its user");
  schedLost(h, LINK);
  farHello(h, LINK, "node7", "s1", { user: "alice" });
  assert.ok(!told("alice", "as alice"));
  h.actions.length = 0;
  await session(h, [["set sched s1 sched_user=bob"]]);
  assert.ok(told("bob", "as alice"));
  assert.deepEqual(actions(h, "stop-sched", "start-sched"), []);
});

test("only the host that sched_host names speaks for a scheduler (R1)", async () => {
  const h = await world();
  schedHello(h, 7, "s1");
  assert.deepEqual(refusalOf(h, 7), { code: 15007, text: "sched_host of s1 is node7, and the server dials the scheduler there" });
  farHello(h, 8, "node8");
  assert.deepEqual(refusalOf(h, 8), { code: 15007, text: "sched_host of s1 is node7, and the server dials the scheduler there" });
  farHello(h, 9, "node7", "default");
  assert.deepEqual(refusalOf(h, 9), { code: 15230, text: "Scheduler already connected" });
  farHello(h, 10, "node7", "nosuch");
  assert.deepEqual(refusalOf(h, 10), { code: 15213, text: "Unknown Scheduler" });
  schedLost(h, 1);
  farHello(h, 11, "node7", "default");
  assert.deepEqual(refusalOf(h, 11), { code: 15007, text: "sched_host of default is not node7" });
  assert.equal(attr(h, "state"), "down");
  farHello(h, 12);
  farHello(h, 13);
  assert.deepEqual(refusalOf(h, 13), { code: 15230, text: "Scheduler already connected" });
});

test("names of hosts: with and without domain, in any letters; an address is no name of another host", () => {
  const own = { host: "svr" };
  const named = (sched_host: string) => ({ name: "s1", attrs: { sched_host } });
  const fits = (sched_host: string, host: string): boolean => whyNotSched(named(sched_host) as never, own, host) === null;
  // biome-ignore format: a table
  const rows: readonly (readonly [sched_host: string, host: string, fits: boolean])[] = [
    ["node7",             "node7",     true],
    ["NODE7.cluster.org", "node7",     true],
    ["node7.cluster.org", "node7.cluster.org", true],
    ["node7",             "node70",    false],
    ["node70",            "node7",     false],
    ["node7",             "node7.cluster.org", false],
    ["10.0.0.7",          "10",        false],
    ["10.0.0.7",          "10.0.0.7",  true],
    ["no de7",            "no",        false],
  ];
  for (const [sched_host, host, expected] of rows) assert.equal(fits(sched_host, host), expected, `${sched_host} ${host}`);
  for (const sched_host of ["svr", "SVR.cluster.org", "localhost", "127.0.0.1"]) assert.equal(isRemote(named(sched_host), own), false);
});

test("a host is told of its own schedulers", async () => {
  const h = await world("create sched s2 sched_host=Node7.cluster.org,sched_port=15077", "create sched s3 sched_host=node8");
  const own = { host: HOST };
  assert.deepEqual(schedsOf(h.core.state, own, "node7"), [
    { name: "s1", port: null },
    { name: "s2", port: 15_077 },
  ]);
  assert.deepEqual(schedsOf(h.core.state, own, HOST), []);
});

test("a scheduler that cannot be reached is down and says so, in comment, log, qrun, jobs and explain", async () => {
  const h = await world();
  const early = addJob(h, { queue: "pq" });
  unreached(h);
  assert.deepEqual([attr(h, "state"), attr(h, "comment")], ["down", `Not reached: ${REFUSED}`]);
  const told = (): string[] => logsOf(h, "s1").filter((text) => text.startsWith("cannot be reached"));
  unreached(h);
  assert.deepEqual(told(), [`cannot be reached: ${REFUSED}`], "the same reason is logged once");
  const job = addJob(h, { queue: "pq" });
  const lines = logsOf(h, `Server@${HOST}`).filter((text) => text.startsWith("Unable"));
  assert.deepEqual(lines, [
    "Unable to reach scheduler associated with partition p1",
    `Unable to reach scheduler associated with job ${job}`,
  ]);
  assert.equal(outcome(h, ROOT, { kind: "run-job", job: early }), "15099 Could not contact Scheduler");
  assert.equal(logsOf(h, `Server@${HOST}`).at(-1), `Unable to reach scheduler associated with job ${early}`);
  const { why, remedy } = askOk(h, ALICE, { kind: "explain-job", job }) as Explanation;
  assert.equal(why?.text, `Not Running: Scheduler s1 on host node7 cannot be reached: ${REFUSED}`);
  assert.equal(remedy, "start it there: partita start, or pbs_sched -I s1");
  unreached(h, "node7: it does not answer");
  assert.deepEqual([attr(h, "comment"), told().length], ["Not reached: node7: it does not answer", 2]);
  farHello(h);
  assert.deepEqual([attr(h, "state"), attr(h, "comment")], ["scheduling", undefined]);
  assert.deepEqual(
    snapshotTo(h, LINK).jobs.map(({ id }) => id),
    [early, job],
  );
});

test("the comment of an administrator and that about a fault stay", async () => {
  const h = await world("set sched s1 comment='out of order'");
  unreached(h);
  assert.equal(attr(h, "comment"), "out of order");
  await session(h, [["unset sched s1 comment"]]);
  assert.equal(attr(h, "comment"), `Not reached: ${REFUSED}`);
  farHello(h);
  sched(h, LINK, "sched-fault", { fault: "Unable to change the sched_log directory" });
  schedLost(h, LINK);
  unreached(h);
  assert.deepEqual([attr(h, "comment"), attr(h, "scheduling")], ["Unable to change the sched_log directory", "False"]);
});

test("a lost connection is dialled again, and the next one begins with a snapshot; nothing counts as a crash", async () => {
  const h = await world();
  farHello(h);
  cycle(h, LINK);
  const before = actions(h, "start-sched").length;
  for (let times = 1; times <= 4; times++) {
    schedLost(h, LINK + times - 1);
    assert.equal(attr(h, "state"), "down");
    advance(h, 3);
    assert.equal(actions(h, "start-sched").length, before + times);
    farHello(h, LINK + times);
    assert.deepEqual(sentTo(h, LINK + times), ["sched-snapshot", "sched-cycle"]);
    cycle(h, LINK + times);
  }
  assert.equal(attr(h, "comment"), undefined);
});

test("a scheduler that its host stops is dialled further on, until it comes back", async () => {
  const h = await world();
  farHello(h);
  cycle(h, LINK);
  h.actions.length = 0;
  sched(h, LINK, "sched-leaving", {});
  schedLost(h, LINK);
  advance(h, 3);
  assert.deepEqual(actions(h, "start-sched", "stop-sched"), ["start-sched"]);
});

test("a cycle is cut off: its decisions do not count, qrun is refused, and the next cycle sees the present state", async () => {
  const h = await world();
  farHello(h);
  cycle(h, LINK);
  const job = addJob(h, { queue: "pq" });
  const token = h.next_token;
  assert.equal(outcome(h, ROOT, { kind: "run-job", job }), "deferred");
  schedLost(h, LINK);
  assert.deepEqual(h.answers.get(token), { ok: false, code: 15099, text: "Could not contact Scheduler" });
  sched(h, LINK, "sched-decisions", { cycle: 2, decisions: [{ kind: "run", job, exec_vnode: "(v1:ncpus=1)" }] });
  assert.equal(stateOf(h, job), "Q 10", "a late frame of the old connection");
  farHello(h, 6);
  assert.deepEqual(cycle(h, 6, [{ kind: "run", job, exec_vnode: "(v1:ncpus=1)" }]), [{ ok: true }]);
});

test("it moves: the old scheduler is told to end, and the new place is used when the old connection is gone", async () => {
  const h = await world();
  farHello(h);
  cycle(h, LINK);
  h.actions.length = 0;
  await session(h, [["set sched s1 sched_host=node8"]]);
  assert.deepEqual([sentTo(h, LINK).at(-1), actions(h, "stop-sched").length], ["sched-quit", 1]);
  const before = actions(h, "start-sched").length;
  schedLost(h, LINK);
  advance(h, 3);
  assert.equal(actions(h, "start-sched").length, before + 1);
  farHello(h, 6);
  assert.deepEqual(refusalOf(h, 6), { code: 15007, text: "sched_host of s1 is node8, and the server dials the scheduler there" });
  farHello(h, 7, "node8");
  assert.equal(attr(h, "state"), "scheduling");
  cycle(h, 7);
  await session(h, [["unset sched s1 sched_host"]]);
  schedLost(h, 7);
  advance(h, 3);
  schedHello(h, 8, "s1");
  assert.equal(attr(h, "state"), "scheduling", "it is this host's again");
});

test("another sched_port: the connection ends, the scheduler does not, and the server dials at once", async () => {
  const h = await world();
  farHello(h);
  cycle(h, LINK);
  const before = actions(h, "start-sched").length;
  await session(h, [["set sched s1 sched_port=15077"]]);
  assert.ok(h.actions.some((action) => action.kind === "drop-link" && action.link === LINK));
  assert.deepEqual([sentTo(h, LINK).includes("sched-quit"), actions(h, "start-sched").length], [false, before + 1]);
});

test("an unreachable scheduler that is not wanted any more is not dialled, and its comment goes", async () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [line: string, comment: string | undefined])[] = [
    ["set sched s1 scheduling=False", undefined],
    ["unset sched s1 partition",      "Scheduler does not contain a partition"],
    ["unset sched s1 sched_host",     undefined],
  ];
  for (const [line, comment] of rows) {
    const h = await world();
    unreached(h);
    h.actions.length = 0;
    await session(h, [[line]]);
    assert.deepEqual([attr(h, "comment"), actions(h, "stop-sched").length > 0], [comment, true], line);
    unreached(h);
    assert.equal(attr(h, "comment"), comment, `${line}: a late report`);
  }
  const h = await world();
  unreached(h);
  h.actions.length = 0;
  await session(h, [["delete sched s1"]]);
  assert.deepEqual(actions(h, "stop-sched"), ["stop-sched"]);
  unreached(h);
});

test("the server comes back: it dials, and the comment of before is gone", async () => {
  const h = await world();
  unreached(h);
  h.actions.length = 0;
  restart(h);
  assert.deepEqual([actions(h, "start-sched"), attr(h, "comment")], [["start-sched"], undefined]);
  farHello(h, 6);
  assert.deepEqual([attr(h, "state"), attr(h, "comment")], ["scheduling", undefined]);
});

test("silence: a host that does not answer is dialled again after sched_silence_timeout, one that does after sched_cycle_length more (B7)", async () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [process: "none" | "runs", from_s: number, to_s: number])[] = [
    ["none", 45, 60],
    ["runs", 45 + 100, 60 + 100],
  ];
  for (const [process, from_s, to_s] of rows) {
    const h = await world("set sched s1 sched_cycle_length=100");
    farHello(h);
    h.silent.add(LINK);
    h.sights.set("s1", { pid: 0, process });
    let seconds = 0;
    for (; attr(h, "state") !== "down" && seconds < 1000; seconds++) advance(h, 1);
    assert.ok(seconds >= from_s && seconds <= to_s, `${process}: ${seconds} s`);
    assert.ok(logsOf(h, "s1").some((text) => /^has not answered for \d+ seconds on host node7; it is dialled again$/.test(text)));
    assert.deepEqual(actions(h, "kill-sched"), [], "its process is not ours to end");
    assert.ok(h.actions.some((action) => action.kind === "drop-link" && action.link === LINK));
    assert.equal(actions(h, "start-sched").length, 2);
  }
});

test("silence: a scheduler that answers pings keeps its connection in a long cycle", async () => {
  const h = await world();
  farHello(h);
  advance(h, 2000);
  assert.equal(attr(h, "state"), "scheduling");
});

test("directories with their default names are the host's own: they are left out of its snapshot", async () => {
  const h = await world("set sched s1 sched_log=/var/log/s1");
  farHello(h);
  const seen = snapshotTo(h, LINK).sched;
  assert.deepEqual([seen.attrs["sched_priv"], seen.attrs["sched_log"]], [undefined, "/var/log/s1"]);
  assert.equal(attr(h, "sched_priv"), "/home/pbs/sched_priv_s1");
  cycle(h, LINK);
  await session(h, [["unset sched s1 sched_log"]]);
  const delta = h.to_scheds.findLast(({ link, type }) => link === LINK && type === "sched-delta")?.data as {
    readonly changes: readonly { readonly put: string; readonly value: { readonly attrs: { readonly [name: string]: unknown } } }[];
  };
  const put = delta.changes.find((change) => change.put === "sched");
  assert.deepEqual([put?.value.attrs["sched_log"], put?.value.attrs["sched_host"]], [undefined, "node7"]);
});

test("no directories are made here for a scheduler that is created for another host", async () => {
  const h = await world();
  assert.deepEqual(actions(h, "prepare-sched"), ["prepare-sched"], "s1 was created before it had a host");
  await session(h, [["create sched s2 sched_host=node8"]]);
  assert.ok(!h.actions.some((action) => action.kind === "prepare-sched" && action.sched === "s2"));
});
