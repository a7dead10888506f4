// 40,000 protocol frames, damaged and random: texts into the frame decoder, requests of clients, and frames of moms and
// schedulers (welcomed ones and others) through their schemas into the server's core: no crash, no hang, no accepted nonsense.
//
// F1. The decoder returns frames or throws FrameError, however the text is cut.
// F2. A frame is refused by its schema or accepted. An accepted frame is answered or refused with a PBS error, and leaves a
//     state in which every invariant holds.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Request } from "#protocol/messages.ts";
import { parseRequest } from "#protocol/schema.ts";
import { parseFrame } from "#protocol/schema-link.ts";
import { encodeFrame, FrameError, frameDecoder } from "#protocol/wire/frame.ts";
import { HOST } from "#sim/server-process.ts";
import { START_MS } from "#sim/world.ts";
import { type Prng, prng } from "#support/prng.ts";
import { anyValue, damaged, mutated, noise } from "./mutate.ts";
import { ALICE, checkState, ROOT, type Target, target } from "./target.ts";

const FROM = Number(process.env["PARTITA_FUZZ_FROM"] ?? 1);

/** The messages of the causes, outermost first. */
function wrapped(where: string, error: unknown): Error {
  return new Error(where, { cause: error });
}

// --- the decoder

test("10,000 streams of frames, damaged and cut anywhere: the decoder gives frames or refuses", () => {
  const random = prng(`stream ${FROM}`);
  const taken = { frames: 0, refused: 0 };
  for (let at = 0; at < 10_000; at++) {
    let text = Array.from({ length: random.int(1, 4) }, () =>
      encodeFrame(random.pick(["request", "mom-hello", "x"]), anyValue(random, 3)),
    ).join("");
    if (random.chance(0.6)) text = mutated(random, text, ["\f", "{", "}", '"type"', '"data"', "null", "[", "]", ":"]);
    if (random.chance(0.05)) text = noise(random, 200);
    const limit = random.pick([64, 300, 10_000]);
    const decoder = frameDecoder(limit, random.chance(0.5) ? new Set(["request", "x"]) : undefined);
    try {
      for (let from = 0; from < text.length; ) {
        const to = Math.min(text.length, from + random.int(1, 40));
        decoder.push(text.slice(from, to), (frame) => {
          taken.frames++;
          assert.equal(typeof frame.type, "string");
        });
        assert.ok(decoder.pending <= limit);
        from = to;
      }
    } catch (error) {
      if (!(error instanceof FrameError)) throw wrapped(`stream ${at} of ${FROM}: ${JSON.stringify(text)}`, error);
      taken.refused++;
    }
  }
  assert.ok(taken.frames > 5000 && taken.refused > 1000, JSON.stringify(taken));
});

// --- requests

const JOB_ATTRS = [
  { name: "Job_Name", value: "a" },
  { name: "Resource_List", resource: "select", value: "1:ncpus=1" },
  { name: "Resource_List", resource: "walltime", value: "60" },
  { name: "Variable_List", value: "PBS_O_HOME=/" },
  { name: "Output_Path", value: "svr:/o" },
];

function request(random: Prng, server: Target): Request {
  const job = random.pick([...server.core.state.jobs.keys(), `1.${HOST}`, "1", "99", "1[2].svr", "1[].svr"]);
  const op = {
    name: random.pick(["Priority", "Resource_List", "comment", "Hold_Types", "Execution_Time"]),
    resource: "walltime",
    op: "=" as const,
    value: random.pick(["1", "60", "u", "x"]),
  };
  return random.pick<Request>([
    { kind: "queue-job", destination: random.pick(["", "workq"]), attrs: JOB_ATTRS, script: "true\n" },
    { kind: "queue-job", destination: "", attrs: JOB_ATTRS, script: null },
    { kind: "queue-jobs", jobs: [{ destination: "", attrs: JOB_ATTRS, script: null }] },
    {
      kind: "status",
      object: random.pick(["job", "queue", "node", "server", "sched", "resource", "resv", "hook"]),
      ids: random.pick([[], [job], ["workq"]]),
      attrs: random.pick([["job_state"], ["comment", "state"]]),
    },
    { kind: "select-jobs", criteria: [{ name: "Priority", op: "ge", value: "0" }], states: "QR", destination: "workq" },
    {
      kind: "manager",
      verb: random.pick(["create", "delete", "set", "unset"]),
      object: random.pick(["server", "queue", "node", "sched", "resource", "hook"]),
      name: random.pick(["", "q9", "n1", "s9"]),
      attrs: [op],
    },
    { kind: "modify-job", job, attrs: [op] },
    { kind: "delete-job", job, force: true },
    { kind: "hold-job", job, holds: "u" },
    { kind: "release-job", job, holds: "u" },
    { kind: "move-job", job, destination: "workq" },
    { kind: "order-job", job, other: job },
    { kind: "message-job", job, files: "o", message: "x" },
    { kind: "signal-job", job, signal: "TERM" },
    { kind: "rerun-job", job },
    { kind: "run-job", job, exec_vnode: random.pick(["(n1:ncpus=1)", "-", "(n1:ncpus=1)+(n1:ncpus=1)", "n1"]), async: true },
    { kind: "locate-job", job },
    { kind: "wait-job", job },
    { kind: "backup", file: "/tmp/x" },
    { kind: "delete-resv", resv: "R1.svr" },
  ]);
}

async function withMom(): Promise<Target> {
  const server = await target(["create node n1", "create sched s1", "set sched s1 partition = p1"]);
  server.core.mom(1, "mom-hello", momHello(), START_MS);
  server.core.sched(2, "sched-hello", { name: "default", pid: 4, version: "x" }, START_MS);
  server.drain();
  return server;
}

const momHello = () => ({
  host: "n1",
  port: 15002,
  pid: 1,
  version: "x",
  vnodes: [{ name: "n1", attrs: { resources_available: { ncpus: 4, mem: "8gb", arch: "linux" }, sharing: "default_shared", pcpus: 4 } }],
  jobs: [],
});

for (let seed = FROM; seed < FROM + 20; seed++) {
  test(`1,000 damaged requests of seed ${seed}: each is answered or refused`, async () => {
    const random = prng(`request ${seed}`);
    const server = await withMom();
    const counts = { malformed: 0, refused: 0, ok: 0 };
    for (let at = 0; at < 1000; at++) {
      let data: unknown = { id: at, ...request(random, server) };
      for (let times = random.int(0, 2); times > 0; times--) data = damaged(random, data);
      try {
        const parsed = parseRequest(JSON.parse(JSON.stringify(data) ?? "null"));
        if (!parsed.ok) {
          counts.malformed++;
          assert.ok([15005, 15031].includes(parsed.code), String(parsed.code));
          continue;
        }
        if (parsed.request.kind === "shutdown") continue;
        const { reply } = server.ask(random.chance(0.5) ? ROOT : ALICE, parsed.request);
        if (reply?.ok === false) counts.refused++;
        if (reply?.ok === true) counts.ok++;
        if (at % 20 === 0) checkState(server);
      } catch (error) {
        throw wrapped(`seed ${seed}, request ${at}: ${JSON.stringify(data)}`, error);
      }
    }
    checkState(server);
    assert.ok(counts.malformed > 100 && counts.ok > 100, JSON.stringify(counts));
  });
}

// --- frames of daemons

function momFrame(random: Prng, server: Target): readonly [type: string, data: unknown] {
  const [job = { id: `1.${HOST}`, attrs: { run_count: 1 } }] = random.shuffle([...server.core.state.jobs.values()]);
  const run = { job: job.id, run_count: random.chance(0.8) ? (job.attrs.run_count ?? 1) : random.int(0, 5) };
  const used = { cput: 1, mem: "1kb", walltime: 1, ncpus: 1 };
  return random.pick<readonly [string, unknown]>([
    [
      "mom-hello",
      {
        ...momHello(),
        jobs: random.chance(0.5) ? [] : [{ ...run, state: random.pick(["starting", "running", "suspended", "ended"]), session_id: 5 }],
      },
    ],
    ["mom-vnodes", { vnodes: [...momHello().vnodes, { name: "n1[0]", attrs: { resources_available: { ncpus: 2 } } }] }],
    ["mom-started", { ...run, session_id: 7, jobdir: "/home/x" }],
    ["mom-usage", { jobs: [{ ...run, used }] }],
    ["mom-obit", { ...run, exit_status: random.pick([0, 1, 271, -1, -2, -3, -4, -11, -29, -99]), used, stageout_status: 1 }],
    ["mom-result", { token: random.int(0, 5), ok: random.chance(0.5), code: 15070 }],
  ]);
}

function schedFrame(random: Prng, server: Target): readonly [type: string, data: unknown] {
  const job = random.pick([...server.core.state.jobs.keys(), `99.${HOST}`]);
  const decision = random.pick([
    {
      kind: "run",
      job,
      exec_vnode: random.pick([
        "(n1:ncpus=1)",
        "(n1:ncpus=9)",
        "(n1[0]:ncpus=1)",
        "(nosuch:ncpus=1)",
        "n1",
        "((",
        "(n1:ncpus=1:mem=1gb)+(n1:ncpus=1)",
        "",
      ]),
    },
    { kind: "comment", job, comment: "Not Running: x", why: { code: "X" } },
    { kind: "qrun-refused", job, text: "no" },
    { kind: "estimate", job, start_s: 1, exec_vnode: "(n1)", topjob: true },
    { kind: "preempt", job, methods: "S", for: job },
  ]);
  const cycle = random.int(0, 5);
  return random.pick<readonly [string, unknown]>([
    ["sched-hello", { name: random.pick(["default", "s1", "nosuch", ""]), pid: 3, version: "x" }],
    ["sched-decisions", { cycle, decisions: [decision, decision] }],
    ["sched-decisions", { cycle, decisions: [decision] }],
    ["sched-cycle-end", { cycle, jobs_considered: 1, cycle_ms: 1 }],
    ["sched-fault", { fault: random.pick([null, "x", "PBS failed validation checks for sched_priv directory"]) }],
    ["sched-leaving", {}],
    ["sched-problem", { problem: random.pick([null, "module x: left out"]) }],
    ["sched-wake", {}],
  ]);
}

for (let seed = FROM; seed < FROM + 10; seed++) {
  test(`1,000 damaged frames of moms and schedulers of seed ${seed}: refused or taken, never believed beyond reason`, async () => {
    const random = prng(`daemon ${seed}`);
    const server = await withMom();
    const { core } = server;
    const counts = { refused: 0, taken: 0 };
    let now_ms = START_MS;
    for (let at = 0; at < 1000; at++) {
      if (at % 10 === 0)
        for (let times = 0; times < 3; times++)
          server.ask(ALICE, { kind: "queue-job", destination: "workq", attrs: JOB_ATTRS, script: "true\n" });
      const mom = random.chance(0.5);
      const [type, good] = mom ? momFrame(random, server) : schedFrame(random, server);
      let data: unknown = good;
      for (let times = random.int(0, 2); times > 0; times--) data = damaged(random, data);
      // 1 and 2 were welcomed; the others only claim to be.
      const link = random.chance(0.7) ? (mom ? 1 : 2) : random.int(1, 9);
      try {
        now_ms += random.int(0, 3000);
        const text = JSON.parse(JSON.stringify(data) ?? "null") as unknown;
        const parsed = mom ? parseFrame("mom-to-server", type, text) : parseFrame("sched-to-server", type, text);
        if (!parsed.ok) {
          counts.refused++;
          continue;
        }
        counts.taken++;
        if (mom) core.mom(link, parsed.frame.type as never, parsed.frame.data as never, now_ms);
        else core.sched(link, parsed.frame.type as never, parsed.frame.data as never, now_ms);
        server.drain();
        if (random.chance(0.03)) core.momLost(random.int(1, 9), now_ms);
        if (random.chance(0.03)) core.schedLost(random.int(1, 9), now_ms);
        core.tick(now_ms);
        server.drain();
        checkState(server);
        if (at % 10 === 0) {
          for (const object of ["job", "node", "queue", "sched", "server"] as const)
            assert.ok(server.ask(ROOT, { kind: "status", object, ids: [] }).reply?.ok);
        }
      } catch (error) {
        throw wrapped(`seed ${seed}, frame ${at}: link ${link} ${type} ${JSON.stringify(data)}`, error);
      }
    }
    assert.ok(counts.refused > 100 && counts.taken > 100, JSON.stringify(counts));
  });
}
