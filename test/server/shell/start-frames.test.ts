import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeFrame } from "#protocol/frame.ts";
import type { MomJob } from "#protocol/mom-link.ts";
import { bySize, startFrames } from "#server/shell/start-frames.ts";

const MI = 1024 * 1024;
const job = (id: string, chars: number): string => id + "x".repeat(chars);

test("jobs go to a mom in frames of a bounded size, in their order", () => {
  const jobs = [job("1", 1), job("2", 7 * MI), job("3", 7 * MI), job("4", 7 * MI), job("5", 20 * MI), job("6", 1)];
  assert.deepEqual(
    bySize(jobs).map((frame) => frame.map((text) => text[0])),
    [["1", "2", "3"], ["4"], ["5"], ["6"]],
  );
  assert.deepEqual(bySize([]), []);
});

test("frames of one mom keep their order, whatever waits for scripts; starts wait while decisions come in", async () => {
  const sent: string[] = [];
  let deciding = true;
  const asked: (readonly string[])[] = [];
  const to = (number: number) => ({
    send: (type: string) => void sent.push(`${number} ${type}`),
    sendText: (text: string) => {
      const { type, data } = decodeFrame(text.slice(0, -1)) as { type: string; data: { jobs: MomJob[] } };
      sent.push(`${number} ${type} ${data.jobs.map(({ id, script, cookie }) => `${id}:${script}:${cookie.length}`).join(" ")}`);
    },
    destroy: () => void sent.push(`${number} destroyed`),
  });
  const send = startFrames({
    link: to,
    scripts: async (ids) => {
      asked.push(ids);
      return new Map(ids.map((id) => [id, `script of ${id}`]));
    },
    isDeciding: () => deciding,
    complain: (text) => assert.fail(text),
  });
  const job = (id: string): MomJob =>
    ({ id, attrs: id === "3.s" ? { executable: "x" } : {}, script: null, cookie: "" }) as unknown as MomJob;
  send({ link: 1, type: "mom-start", data: { jobs: [job("1.s"), job("5[3].s")] } });
  send({ link: 1, type: "mom-discard", data: { job: "1.s" } });
  send({ link: 2, type: "mom-discard", data: { job: "9.s" } });
  send({ link: 1, type: "mom-start", data: { jobs: [job("3.s")] } });
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(sent, ["2 mom-discard"]);
  deciding = false;
  while (sent.length < 4) await new Promise((resolve) => setTimeout(resolve, 1));
  assert.deepEqual(sent.slice(1), [
    "1 mom-start 1.s:script of 1.s:32 5[3].s:script of 5[].s:32",
    "1 mom-discard",
    "1 mom-start 3.s:null:32",
  ]);
  assert.deepEqual(asked, [["1.s", "5[].s"]]);
});

test("scripts that cannot be read end the links of the moms that need them, and no other's", async () => {
  const sent: string[] = [];
  const told: string[] = [];
  const send = startFrames({
    link: (number) => ({
      send: (type) => void sent.push(`${number} ${type}`),
      sendText: (text) => void sent.push(`${number} ${decodeFrame(text.slice(0, -1)).type}`),
      destroy: () => void sent.push(`${number} destroyed`),
    }),
    scripts: async () => Promise.reject(new Error("disk I/O error")),
    isDeciding: () => false,
    complain: (text) => void told.push(text),
  });
  const job = (id: string, attrs: object): MomJob => ({ id, attrs, script: null, cookie: "" }) as unknown as MomJob;
  send({ link: 1, type: "mom-start", data: { jobs: [job("1.s", {}), job("2.s", { executable: "x" })] } });
  send({ link: 1, type: "mom-discard", data: { job: "1.s" } });
  send({ link: 2, type: "mom-start", data: { jobs: [job("3.s", { executable: "x" })] } });
  while (sent.length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
  assert.deepEqual(sent, ["1 destroyed", "2 mom-start"]);
  assert.deepEqual(told, ["scripts cannot be read: disk I/O error"]);
});
