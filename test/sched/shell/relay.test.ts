// The relay between the server of another host and a scheduler that runs as another user (Y2, Y3, Y5, Y6), with children that the test plays.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { RELAY_FD, runRelayed } from "#sched/shell/relay.ts";
import type { ServerEnd } from "#sched/shell/server-way.ts";
import { until } from "../../protocol/wire/links-bed.ts";

/** A child that carries out this code: say(object) sends a frame, hear(work) calls work with each frame that arrives. */
const child = (code: string) => `
  const socket = new (require("node:net").Socket)({ fd: ${RELAY_FD}, readable: true, writable: true });
  const say = (type, data) => socket.write(JSON.stringify({ type, data }) + "\\f");
  const send = (number, type, data = {}) => say("frame", { number, type, data });
  const hear = (work) => socket.setEncoding("utf8").on("data", (text) => text.split("\\f").filter(Boolean).forEach((one) => work(JSON.parse(one))));
  ${code}`;

type World = { end: ServerEnd | null; readonly sent: string[]; readonly complaints: string[]; unsent: number; status: Promise<number> };

function relay(code: string): World {
  const world: World = { end: null, sent: [], complaints: [], unsent: 0, status: Promise.resolve(0) };
  world.status = runRelayed({
    name: "s1",
    open: async (note) => {
      note(1, "listening");
      return (end) => {
        world.end = end;
        const pass = (type: string, data: unknown): void => void world.sent.push(`${type} ${JSON.stringify(data)}`);
        const reconnect = (): void => void world.sent.push("reconnect");
        return { send: pass, pass, unsent_chars: () => world.unsent, reconnect, close: () => void world.sent.push("closed") };
      };
    },
    start: () => spawn(process.execPath, ["-e", child(code)], { stdio: ["ignore", "inherit", "inherit", "ignore", "pipe"] }),
    complain: (text) => void world.complaints.push(text),
  });
  return world;
}

const opened = async (world: World): Promise<ServerEnd> => {
  await until("the way is open", () => world.end !== null);
  world.end?.opened();
  return world.end as ServerEnd;
};

test("frames pass in both directions, with the relay's notes, and the relay ends with the status of its child", async () => {
  const world = relay(`hear(({ type, data }) => {
    if (type === "opened") send(data.number, "sched-hello", { name: "s1" });
    if (type === "note") send(1, "noted", data);
    if (type === "frame") { send(1, "heard", data); socket.end(); setTimeout(() => process.exit(3), 50); }
  });`);
  const end = await opened(world);
  end.frame("sched-ping", { number: 7 });
  assert.equal(await world.status, 3);
  assert.deepEqual(world.sent, [
    'noted {"event":1,"text":"listening"}',
    'sched-hello {"name":"s1"}',
    'heard {"type":"sched-ping","data":{"number":7}}',
    "closed",
  ]);
});

test("what was sent on an earlier connection does not reach the server on a later one", async () => {
  const world = relay(`hear(({ type, data }) => {
    if (type !== "opened" || data.number !== 2) return;
    send(1, "sched-decisions"); say("reconnect", { number: 1 }); send(2, "sched-hello", { name: "s1" }); socket.end();
  });`);
  const end = await opened(world);
  end.lost("cut");
  end.opened();
  await world.status;
  assert.deepEqual(world.sent, ['sched-hello {"name":"s1"}', "closed"]);
});

for (const [what, code, why] of [
  ["says hello with another name", `send(1, "sched-hello", { name: "s2" })`, "it said hello with another name"],
  ["sends no JSON", `socket.write("nonsense\\f")`, "it sent what is no message"],
  ["sends a frame without data", `say("frame", { number: 1, type: "sched-wake", data: null })`, "it sent what is no message"],
] as const)
  test(`a scheduler that ${what} is ended`, async () => {
    const world = relay(`hear(({ type }) => { if (type === "opened") ${code}; }); setInterval(() => undefined, 1000);`);
    await opened(world);
    assert.equal(await world.status, 1);
    assert.deepEqual([world.complaints, world.sent], [[`the scheduler s1 is ended: ${why}`], ["closed"]]);
  });

test("while the server takes nothing, nothing more is read from the scheduler", async () => {
  const world = relay(`hear(({ type }) => {
    if (type !== "opened") return;
    for (let count = 0; count < 200; count++) send(1, "sched-problem", { problem: "x".repeat(100_000) });
    socket.end();
  });`);
  world.unsent = 1e9;
  await opened(world);
  await until("some have passed", () => world.sent.length > 0);
  await new Promise((resolve) => setTimeout(resolve, 300));
  const passed = world.sent.length;
  assert.ok(passed < 50, `${passed} of 200 frames`);
  world.unsent = 0;
  await world.status;
  assert.equal(world.sent.length, 201);
});
