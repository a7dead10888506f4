// 100,000 damaged and random frames against a running server: it closes only the connections that sent them, and continues to
// serve.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createConnection, type Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { encodeFrame } from "#protocol/wire/frame.ts";
import { serverSocketPath } from "#protocol/wire/socket-path.ts";
import { type Prng, prng } from "#support/prng.ts";
import { startComplex } from "../complex.ts";

const FRAMES = 100_000;
const FRAMES_PER_CONNECTION = 200;

/** All requests except those that legitimately end the server or write files. */
const SEEDS: readonly { readonly kind: string; readonly [field: string]: unknown }[] = [
  {
    kind: "queue-job",
    destination: "",
    script: "#!/bin/sh\ntrue\n",
    attrs: [
      { name: "Job_Name", value: "x" },
      { name: "Resource_List", resource: "select", value: "1:ncpus=1" },
    ],
  },
  { kind: "queue-jobs", jobs: [{ destination: "workq", script: null, attrs: [] }] },
  { kind: "status", object: "job", ids: [], history: "with" },
  { kind: "status", object: "server", ids: [] },
  { kind: "select-jobs", criteria: [{ name: "Priority", op: "ge", value: "0" }], states: "QR" },
  { kind: "manager", verb: "create", object: "queue", name: "q1", attrs: [{ name: "queue_type", op: "=", value: "execution" }] },
  {
    kind: "manager",
    verb: "set",
    object: "node",
    name: "n1",
    attrs: [{ name: "resources_available", resource: "ncpus", op: "=", value: "4" }],
  },
  { kind: "manager", verb: "delete", object: "queue", name: "q1", attrs: [] },
  { kind: "manager", verb: "set", object: "sched", name: "default", attrs: [{ name: "scheduler_iteration", op: "=", value: "600" }] },
  { kind: "delete-job", job: "1" },
  { kind: "modify-job", job: "1", attrs: [{ name: "Priority", op: "=", value: "5" }] },
  { kind: "hold-job", job: "1", holds: "u" },
  { kind: "release-job", job: "1", holds: "u" },
  { kind: "move-job", job: "1", destination: "workq" },
  { kind: "order-job", job: "1", other: "2" },
  { kind: "message-job", job: "1", files: "o", message: "hello" },
  { kind: "signal-job", job: "1", signal: "SIGNULL" },
  { kind: "rerun-job", job: "1" },
  { kind: "run-job", job: "1" },
  { kind: "locate-job", job: "1" },
  { kind: "submit-resv", attrs: [] },
];
const DAEMON_FRAMES: readonly (readonly [type: string, data: unknown])[] = [
  ["sched-hello", { name: "nobody", pid: 1, version: "x" }],
  ["sched-decisions", { cycle: 1, decisions: [{ kind: "run", job: "1", exec_vnode: "(a:ncpus=1)" }] }],
  ["sched-cycle-end", { cycle: 1, jobs_considered: 0, cycle_ms: 1 }],
  ["mom-hello", { host: "nowhere", port: 1, pid: 1, version: "x", vnodes: [], jobs: [] }],
  ["mom-obit", { job: "1", run_count: 1, exit_status: 0, used: {} }],
  ["mom-usage", { jobs: [] }],
];

const ODD: readonly unknown[] = [
  null,
  0,
  -1,
  1e308,
  "",
  "\0",
  "\u{1f600}",
  [],
  {},
  true,
  "x".repeat(5000),
  "%s%n",
  "-".repeat(300),
  { name: {} },
  [[[]]],
  "1[",
  "@",
  "1.svr@",
  "^array_index^",
];

/** A copy in which some values are wrong, missing or too many. */
function damaged(value: unknown, random: Prng): unknown {
  if (random.chance(0.12)) return random.pick(ODD);
  if (Array.isArray(value)) {
    const items = value.map((item) => damaged(item, random));
    return random.chance(0.1) ? [...items, ...items, random.pick(ODD)] : items;
  }
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value)
      .filter(() => !random.chance(0.04))
      .map(([name, item]) => [name, name === "kind" ? item : damaged(item, random)]);
    if (random.chance(0.04)) entries.push([random.pick(["__proto__", "constructor", "extra", ""]), random.pick(ODD)]);
    return Object.fromEntries(entries);
  }
  if (typeof value === "string" && random.chance(0.15)) return mutated(value, random);
  return value;
}

function mutated(text: string, random: Prng): string {
  const at = random.int(0, text.length);
  return (
    text.slice(0, at) + random.pick(["", "\n", ";", "=", "+", ":", "0", "é", '"', "\\", "\u0000", text]) + text.slice(at + random.int(0, 2))
  );
}

function hostileFrame(id: number, random: Prng): string {
  if (random.chance(0.001)) {
    const [type, data] = random.pick(DAEMON_FRAMES);
    return encodeFrame(type, damaged(data, random));
  }
  const text = encodeFrame("request", { id, ...(damaged(random.pick(SEEDS), random) as object) });
  // Damage to the text itself costs the connection, so it is rare and connections live long enough.
  return random.chance(0.001) ? mutated(text, random) : text;
}

function open(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(path, () => resolve(socket));
    socket.once("error", reject);
  });
}

/** Sends frames and reads until the server has answered or closed the connection; both are legal. */
async function attack(path: string, frames: readonly string[]): Promise<number> {
  const socket = await open(path);
  socket.removeAllListeners("error");
  socket.on("error", () => undefined);
  let replies = 0;
  let rest = "";
  let last = -1;
  const done = new Promise<void>((resolve) => {
    socket.on("close", () => resolve());
    socket.on("data", (chunk: Buffer) => {
      const parts = (rest + chunk.toString()).split("\f");
      rest = parts.pop() ?? "";
      for (const part of parts) {
        const { type, data } = JSON.parse(part) as { type: string; data: { id: number } };
        if (type !== "reply") continue;
        replies++;
        if (data.id === last) socket.end();
      }
    });
  });
  last = 4_000_000_000;
  socket.write(frames.join("") + encodeFrame("request", { id: last, kind: "locate-job", job: "0" }));
  await done;
  return replies;
}

test("100,000 damaged frames: no crash, no hang, and the server goes on as before", async () => {
  const complex = await startComplex();
  try {
    // No job runs meanwhile, because the submitted ones are not meant to run.
    complex.must("qmgr", ["-c", "set server scheduling = False"]);
    const pid = (): string => readFileSync(join(complex.pbsHome, "server_priv/server.lock"), "utf8");
    const before = pid();
    const path = serverSocketPath(complex.pbsHome);
    const random = prng(process.env["PARTITA_SEED"] ?? "hostile frames");
    let replies = 0;
    for (let sent = 0; sent < FRAMES; sent += FRAMES_PER_CONNECTION) {
      replies += await attack(
        path,
        Array.from({ length: FRAMES_PER_CONNECTION }, (_, at) => hostileFrame(at, random)),
      );
    }
    assert.ok(replies > FRAMES / 2, `${replies} replies`);
    assert.equal(pid(), before, "the same server");
    assert.match(complex.must("qstat", ["-B"]), /Active/);
    const id = complex.must("qsub", ["--", "/bin/true"]).trim();
    assert.match(complex.must("qstat", ["-f", id]), /job_state = Q/);
    complex.must("qmgr", ["-c", "print server"]);
    const errors = readdirSync(join(complex.pbsHome, "server_logs"))
      .flatMap((name) => readFileSync(join(complex.pbsHome, "server_logs", name), "utf8").split("\n"))
      .filter((line) => line.split(";")[1] === "0001");
    assert.deepEqual(errors.slice(0, 5), [], `${errors.length} internal errors`);
  } finally {
    await complex.stop();
  }
});
