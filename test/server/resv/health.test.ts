// Lost and recovered vnodes, and maintenance: degraded reservations and their recovery.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ALICE,
  addHost,
  addJob,
  addVnode,
  advance,
  ask,
  type Harness,
  harness,
  logsOf,
  mom,
  momHello,
  outcome,
  ROOT,
  restart,
  runOn,
  schedHello,
  settle,
} from "../harness.ts";
import { qmgr } from "../requests/qmgr.ts";
import { answerResv, mirrored, resvAttrs, resvState, rsub, rsubRequest, wordOf } from "./rsub.ts";

type World = { readonly h: Harness; readonly id: string; readonly link: number };

/** Two hosts, and a reservation of four cpus of n1. */
function complex(words = "start=7200 walltime=3600 select=1:ncpus=4"): World {
  const h = harness();
  const link = addHost(h, "n1", { ncpus: 8 });
  addHost(h, "n2", { ncpus: 8 });
  schedHello(h, 1);
  const id = rsub(h, words);
  assert.deepEqual(answerResv(h, 1, id, "(n1:ncpus=4)"), { ok: true });
  return { h, id, link };
}

/** The mom reports its vnodes: sharing by name. */
function reportVnodes(h: Harness, link: number, sharing: { readonly [name: string]: string }): void {
  const vnodes = Object.entries(sharing).map(([name, word]) => ({
    name,
    attrs: { resources_available: { ncpus: 8 }, pcpus: 8, sharing: word },
  }));
  mom(h, link, "mom-vnodes", { vnodes });
}

/** Reservations recorded at a vnode. */
const promisedTo = (h: Harness, name: string): string[] => [...(h.core.state.vnodes.get(name)?.resvs.keys() ?? [])];

const offline = (h: Harness, name: string, op: "=" | "-=" = "="): string =>
  outcome(h, ROOT, { kind: "manager", verb: "set", object: "node", name, attrs: [{ name: "state", op, value: "offline" }] });

test("a vnode goes and comes back: degraded, and sound again at once", () => {
  const { h, id } = complex();
  offline(h, "n1");
  assert.equal(resvState(h, id), "DG 10");
  assert.equal(resvAttrs(h, id).resv_nodes, "(n1:ncpus=4)");
  const retry_s = resvAttrs(h, id).reserve_retry;
  assert.equal(retry_s, h.now_ms / 1000 + 600);
  assert.match(logsOf(h, id).at(-1) ?? "", /^An attempt to reconfirm reservation will be made on Fri Nov 20 09:36:28 2026$/);
  offline(h, "n1", "-=");
  assert.deepEqual([resvState(h, id), resvAttrs(h, id).reserve_retry], ["CO 2", retry_s]);
});

test("after reserve_retry_time its scheduler looks for another place; refused, again after that time; found, it is sound", async () => {
  const { h, id } = complex();
  await qmgr(h, "set server reserve_retry_time=100");
  offline(h, "n1");
  advance(h, 99);
  assert.equal(mirrored(h, 1, id)?.ask, undefined);
  advance(h, 1);
  assert.equal(mirrored(h, 1, id)?.ask?.kind, "reconfirm");
  answerResv(h, 1, id, null);
  assert.deepEqual([resvState(h, id), mirrored(h, 1, id)?.ask], ["DG 10", undefined]);
  advance(h, 100);
  answerResv(h, 1, id, "(n2:ncpus=4)");
  assert.deepEqual([resvState(h, id), resvAttrs(h, id).resv_nodes], ["CO 2", "(n2:ncpus=4)"]);
  assert.deepEqual([...(h.core.state.vnodes.get("n1")?.resvs.keys() ?? [])], []);
});

test("another try at the begin of the period at the latest; it begins degraded", async () => {
  const { h, id } = complex("start=300 walltime=3600 select=1:ncpus=4");
  offline(h, "n1");
  assert.equal(resvAttrs(h, id).reserve_retry, resvAttrs(h, id).reserve_start);
  advance(h, 300);
  assert.equal(resvState(h, id), "RN 10");
  assert.equal(mirrored(h, 1, id)?.ask?.kind, "reconfirm");
});

test("a deleted vnode is lost; made again it is back", async () => {
  const { h, id } = complex();
  await qmgr(h, "delete node n1");
  assert.equal(resvState(h, id), "DG 10");
  addVnode(h, "n1", { resources_available: { ncpus: 8 } });
  assert.equal(resvState(h, id), "CO 2");
  assert.deepEqual([...(h.core.state.vnodes.get("n1")?.resvs.keys() ?? [])], [id]);
});

test("a lost mom degrades; a restart of the server gives its hosts time to say hello", () => {
  const { h, id, link } = complex();
  h.core.momLost(link, h.now_ms);
  settle(h);
  assert.equal(resvState(h, id), "DG 10");
  momHello(h, link, "n1", [], { ncpus: 8 });
  assert.equal(resvState(h, id), "CO 2");
  restart(h);
  assert.equal(resvState(h, id), "CO 2");
  advance(h, 59);
  assert.equal(resvState(h, id), "CO 2");
  advance(h, 1);
  assert.equal(resvState(h, id), "DG 10");
});

test("a vnode with a reservation keeps its partition", async () => {
  const { h } = complex();
  assert.match(await qmgr(h, "set node n1 partition=p9"), /Node is busy/);
});

const maintenance = (h: Harness, words: string, hosts: readonly string[], who = ROOT): string =>
  wordOf(ask(h, who, { ...rsubRequest(words), hosts }));

test("maintenance takes whole hosts at once; who was promised something there gives way, and is asked for again when it is over", async () => {
  const { h, id } = complex();
  const later = rsub(h, "start=20000 walltime=600 select=1:ncpus=4");
  answerResv(h, 1, later, "(n1:ncpus=4)");
  assert.equal(maintenance(h, "start=3600 walltime=7200", ["n1"]), "15095 Bad effective UID for reservation");
  await qmgr(h, "set server acl_roots=root@*");
  assert.equal(maintenance(h, "start=3600 walltime=7200", ["n1"], ALICE), "15007 Unauthorized Request ");
  assert.equal(maintenance(h, "start=3600 walltime=7200", ["n1", "n1"]), "15055 Duplicate host: n1");
  assert.equal(maintenance(h, "start=3600 walltime=7200", ["n9"]), "15062 Host with resources not found: n9");
  assert.equal(maintenance(h, "start=3600 walltime=7200", ["n1"]), "M3.svr CONFIRMED");
  const { resv_nodes, Resource_List } = resvAttrs(h, "M3.svr");
  assert.equal(resvAttrs(h, "M3.svr").partition, "pbs-default");
  assert.equal(h.core.state.queues.get("M3")?.attrs["partition"], "pbs-default");
  assert.deepEqual([resv_nodes, Resource_List["select"], Resource_List["place"]], ["(n1:ncpus=8)", "1:host=n1:ncpus=8", "exclhost"]);
  assert.deepEqual([resvState(h, id), resvAttrs(h, id).resv_nodes], ["DG 12", undefined]);
  assert.ok(resvAttrs(h, id).reserve_retry !== undefined);
  assert.equal(resvState(h, later), "CO 2");
  advance(h, 3600);
  assert.equal(resvState(h, "M3.svr"), "RN 5");
  assert.deepEqual(h.core.state.vnodes.get("n1")?.attrs["state"], ["resv-exclusive"]);
  assert.equal(outcome(h, ROOT, { kind: "delete-resv", resv: "M3" }), "ok");
  assert.equal(resvState(h, "M3.svr"), "gone");
  assert.equal(mirrored(h, 1, id)?.ask?.kind, "reconfirm");
  answerResv(h, 1, id, "(n1:ncpus=4)");
  assert.deepEqual([resvState(h, id), resvAttrs(h, id).resv_nodes], ["CO 2", "(n1:ncpus=4)"]);
});

test("maintenance of a host has what comes into being there: who was promised that before gives way", async () => {
  const h = harness();
  addHost(h, "n1", { ncpus: 8 });
  addVnode(h, "n1[0]", { Mom: ["n1"], resources_available: { ncpus: 8, host: "n1" } });
  schedHello(h, 1);
  await qmgr(h, "set server acl_roots=root@*");
  const id = rsub(h, "start=7200 walltime=3600 select=1:ncpus=4");
  answerResv(h, 1, id, "(n1:ncpus=4)");
  await qmgr(h, "delete node n1");
  assert.equal(resvState(h, id), "DG 10");
  assert.equal(maintenance(h, "start=3600 walltime=7200", ["n1"]), "M2.svr CONFIRMED");
  assert.equal(resvAttrs(h, "M2.svr").resv_nodes, "(n1[0]:ncpus=8)");
  assert.deepEqual([resvState(h, id), resvAttrs(h, id).resv_nodes], ["DG 10", "(n1:ncpus=4)"]);
  addVnode(h, "n1", { Mom: ["n1"], resources_available: { ncpus: 8, host: "n1" } });
  assert.deepEqual([resvState(h, id), resvAttrs(h, id).resv_nodes], ["DG 12", undefined]);
  assert.equal(outcome(h, ROOT, { kind: "delete-resv", resv: "M2" }), "ok");
  assert.equal(mirrored(h, 1, id)?.ask?.kind, "reconfirm");
});

test("a whole host that lost the vnode it was promised by: who was promised the rest meanwhile keeps it", async () => {
  const h = harness();
  addHost(h, "n1", { ncpus: 8 });
  addVnode(h, "n1[0]", { Mom: ["n1"], resources_available: { ncpus: 8, host: "n1" } });
  schedHello(h, 1);
  const whole = rsub(h, "start=7200 walltime=3600 select=1:ncpus=4 place=exclhost");
  assert.deepEqual(answerResv(h, 1, whole, "(n1:ncpus=4)"), { ok: true });
  await qmgr(h, "delete node n1");
  const later = rsub(h, "start=9000 walltime=3600 select=1:ncpus=4");
  assert.deepEqual(answerResv(h, 1, later, "(n1[0]:ncpus=4)"), { ok: true });
  addVnode(h, "n1", { Mom: ["n1"], resources_available: { ncpus: 8, host: "n1" } });
  assert.deepEqual([resvState(h, whole), resvState(h, later), resvAttrs(h, later).resv_nodes], ["DG 12", "CO 2", "(n1[0]:ncpus=4)"]);
});

test("a vnode that a host gets is promised to whoever was promised the host whole by another vnode's sharing", () => {
  const h = harness();
  const link = addHost(h, "n1", { ncpus: 8 });
  reportVnodes(h, link, { n1: "default_exclhost" });
  schedHello(h, 1);
  const whole = rsub(h, "start=7200 walltime=3600 select=1:ncpus=4");
  assert.deepEqual(answerResv(h, 1, whole, "(n1:ncpus=4)"), { ok: true });
  reportVnodes(h, link, { n1: "default_exclhost", "n1[0]": "default_exclhost" });
  assert.deepEqual(promisedTo(h, "n1[0]"), [whole]);
});

test("a host whose mom reports another sharing is promised whole to whoever was promised one of its vnodes, and no more when she takes it back", () => {
  const h = harness();
  const link = addHost(h, "n1", { ncpus: 8 });
  reportVnodes(h, link, { n1: "default_shared", "n1[0]": "default_shared" });
  schedHello(h, 1);
  const one = rsub(h, "start=7200 walltime=3600 select=1:ncpus=4");
  assert.deepEqual(answerResv(h, 1, one, "(n1:ncpus=4)"), { ok: true });
  assert.deepEqual(promisedTo(h, "n1[0]"), []);
  const job = addJob(h);
  runOn(h, job, "n1", link);
  reportVnodes(h, link, { n1: "force_exclhost", "n1[0]": "default_shared" });
  assert.deepEqual([promisedTo(h, "n1[0]"), [...(h.core.state.vnodes.get("n1[0]")?.jobs.keys() ?? [])]], [[one], [job]]);
  const late = rsub(h, "start=9000 walltime=3600 select=1:ncpus=4");
  assert.equal(answerResv(h, 1, late, "(n1[0]:ncpus=4)").ok, false, "the whole host is promised");
  restart(h);
  assert.deepEqual([promisedTo(h, "n1[0]"), [...(h.core.state.vnodes.get("n1[0]")?.jobs.keys() ?? [])]], [[one], [job]]);
  momHello(h, link, "n1", [{ job, run_count: 1, state: "running", session_id: 1 }], { ncpus: 8 });
  reportVnodes(h, link, { n1: "default_shared", "n1[0]": "default_shared" });
  assert.deepEqual([promisedTo(h, "n1[0]"), [...(h.core.state.vnodes.get("n1[0]")?.jobs.keys() ?? [])]], [[], []]);
});

test("a vnode whose mom reports that nobody shares it: of two that were promised it for one time the younger loses it", () => {
  const h = harness();
  const link = addHost(h, "n1", { ncpus: 8 });
  schedHello(h, 1);
  const [older, younger, apart] = ["start=7200", "start=9000", "start=20000"].map((start) =>
    rsub(h, `${start} walltime=3600 select=1:ncpus=4`),
  );
  for (const id of [older, younger, apart]) assert.deepEqual(answerResv(h, 1, id as string, "(n1:ncpus=4)"), { ok: true });
  reportVnodes(h, link, { n1: "force_excl" });
  assert.deepEqual(
    [older, younger, apart].map((id) => resvState(h, id as string)),
    ["CO 2", "DG 12", "CO 2"],
  );
  assert.equal(resvAttrs(h, younger as string).resv_nodes, undefined);
});

test("nothing is promised where maintenance is", async () => {
  const { h } = complex();
  await qmgr(h, "set server acl_roots=root@*");
  maintenance(h, "start=20000 walltime=600", ["n1"]);
  const late = rsub(h, "start=20100 walltime=60 select=1:ncpus=1");
  const verdict = answerResv(h, 1, late, "(n1:ncpus=1)");
  assert.match(verdict.ok ? "" : verdict.text, /vnode n1 is promised to M2\.svr$/);
});

test("a vnode made smaller degrades those it was promised to last; another place or a vnode with enough makes them sound", async () => {
  const { h, id } = complex();
  const young = rsub(h, "start=9000 walltime=600 select=1:ncpus=3");
  answerResv(h, 1, young, "(n1:ncpus=3)");
  const later = rsub(h, "start=20000 walltime=600 select=1:ncpus=5");
  answerResv(h, 1, later, "(n1:ncpus=5)");
  const states = (): string => [id, young, later].map((name) => resvState(h, name)).join(" ");
  assert.equal(states(), "CO 2 CO 2 CO 2");
  await qmgr(h, "set node n1 resources_available.ncpus=6");
  assert.equal(states(), "CO 2 DG 10 CO 2");
  await qmgr(h, "set node n1 resources_available.ncpus=4");
  assert.equal(states(), "CO 2 DG 10 DG 10");
  await qmgr(h, "set node n1 resources_available.ncpus=7");
  assert.equal(states(), "CO 2 CO 2 CO 2");
  await qmgr(h, "set node n1 resources_available.ncpus=5");
  assert.equal(states(), "CO 2 DG 10 CO 2");
  advance(h, 600);
  assert.equal(answerResv(h, 1, young, "(n1:ncpus=3)").ok, false, "there is no room");
  assert.deepEqual(answerResv(h, 1, young, "(n2:ncpus=3)"), { ok: true });
  assert.deepEqual([states(), resvAttrs(h, young)["short"]], ["CO 2 CO 2 CO 2", undefined]);
  await qmgr(h, "set node n1 resources_available.ncpus=4");
  restart(h);
  assert.equal(states(), "CO 2 CO 2 DG 10");
});
