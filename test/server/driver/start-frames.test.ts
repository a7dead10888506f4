import assert from "node:assert/strict";
import { test } from "node:test";
import type { MomJob } from "#protocol/mom-link.ts";
import { decodeFrame } from "#protocol/wire/frame.ts";
import type { ClockPort } from "#server/driver/ports.ts";
import { bySize, startFrames } from "#server/driver/start-frames.ts";

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

/** A clock that advances from one piece of work to the next. */
function manualWork() {
  let now_ms = 0;
  const waiting: { readonly at_ms: number; readonly work: () => void }[] = [];
  const later = (delay_ms: number, work: () => void): void => void waiting.push({ at_ms: now_ms + delay_ms, work });
  const clock: Pick<ClockPort, "steady_ms" | "after" | "soon"> = {
    steady_ms: () => now_ms,
    after(delay_ms, work) {
      later(delay_ms, work);
      return () => undefined;
    },
    soon: (work) => later(0, work),
  };
  /** does all work that is due until then */
  const run = (until_ms: number): void => {
    for (;;) {
      const next = waiting.findIndex(({ at_ms }) => at_ms === Math.min(...waiting.map((each) => each.at_ms)));
      const [due] = next >= 0 && (waiting[next]?.at_ms ?? 0) <= until_ms ? waiting.splice(next, 1) : [];
      if (due === undefined) break;
      now_ms = Math.max(now_ms, due.at_ms);
      due.work();
    }
    now_ms = until_ms;
  };
  return { clock, run };
}
const cookies = (count: number): string => "0123456789ABCDEF".repeat(2 * count);
const secret = (job: string, run_count: number): string => `secret of ${job}, ${run_count}`;

test("frames of one mom keep their order, whatever waits for scripts; starts wait while decisions come in", () => {
  const { clock, run } = manualWork();
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
  const { send } = startFrames({
    link: to,
    scripts: (ids, done) => {
      asked.push(ids);
      clock.soon(() => done({ ok: true, value: new Map(ids.map((id) => [id, `script of ${id}`])) }));
    },
    cookies,
    secret,
    clock,
    isDeciding: () => deciding,
    complain: (text) => assert.fail(text),
  });
  const job = (id: string): MomJob =>
    ({ id, attrs: id === "3.s" ? { executable: "x" } : {}, script: null, cookie: "" }) as unknown as MomJob;
  send({ link: 1, type: "mom-start", data: { jobs: [job("1.s"), job("5[3].s")] } });
  send({ link: 1, type: "mom-discard", data: { job: "1.s" } });
  send({ link: 2, type: "mom-discard", data: { job: "9.s" } });
  send({ link: 1, type: "mom-start", data: { jobs: [job("3.s")] } });
  run(900);
  assert.deepEqual(sent, ["2 mom-discard"]);
  deciding = false;
  run(920);
  assert.deepEqual(sent.slice(1), [
    "1 mom-start 1.s:script of 1.s:32 5[3].s:script of 5[].s:32",
    "1 mom-discard",
    "1 mom-start 3.s:null:32",
  ]);
  assert.deepEqual(asked, [["1.s", "5[].s"]]);
});

test("starts do not wait longer than a second for a scheduler's decisions", () => {
  const { clock, run } = manualWork();
  const sent: string[] = [];
  const { send } = startFrames({
    link: () => ({
      send: () => undefined,
      sendText: (text) => void sent.push(decodeFrame(text.slice(0, -1)).type),
      destroy: () => undefined,
    }),
    scripts: (_ids, done) => done({ ok: true, value: new Map() }),
    cookies,
    secret,
    clock,
    isDeciding: () => true,
    complain: (text) => assert.fail(text),
  });
  send({ link: 1, type: "mom-start", data: { jobs: [{ id: "1.s", attrs: {} } as unknown as MomJob] } });
  run(990);
  assert.deepEqual(sent, []);
  run(1010);
  assert.deepEqual(sent, ["mom-start"]);
});

test("scripts that cannot be read end the links of the moms that need them, and no other's", () => {
  const { clock, run } = manualWork();
  const sent: string[] = [];
  const told: string[] = [];
  const { send } = startFrames({
    link: (number) => ({
      send: (type) => void sent.push(`${number} ${type}`),
      sendText: (text) => void sent.push(`${number} ${decodeFrame(text.slice(0, -1)).type}`),
      destroy: () => void sent.push(`${number} destroyed`),
    }),
    scripts: (_ids, done) => clock.soon(() => done({ ok: false, error: new Error("disk I/O error") })),
    cookies,
    secret,
    clock,
    isDeciding: () => false,
    complain: (text) => void told.push(text),
  });
  const job = (id: string, attrs: object): MomJob => ({ id, attrs, script: null, cookie: "" }) as unknown as MomJob;
  send({ link: 1, type: "mom-start", data: { jobs: [job("1.s", {}), job("2.s", { executable: "x" })] } });
  send({ link: 1, type: "mom-discard", data: { job: "1.s" } });
  send({ link: 2, type: "mom-start", data: { jobs: [job("3.s", { executable: "x" })] } });
  run(100);
  assert.deepEqual(sent, ["1 destroyed", "2 mom-start"]);
  assert.deepEqual(told, ["scripts cannot be read: disk I/O error"]);
});

test("the moms of a run on several hosts get the same secret and different cookies; a run on one host gets no secret", () => {
  const { clock, run } = manualWork();
  const sent: MomJob[] = [];
  let made = 0;
  const { send } = startFrames({
    link: () => ({
      send: () => undefined,
      sendText: (text) => void sent.push(...(decodeFrame(text.slice(0, -1)) as unknown as { data: { jobs: MomJob[] } }).data.jobs),
      destroy: () => undefined,
    }),
    scripts: (_ids, done) => done({ ok: true, value: new Map() }),
    cookies: (count) => String(++made).repeat(32 * count),
    secret,
    clock,
    isDeciding: () => false,
    complain: (text) => assert.fail(text),
  });
  const hosts = { n2: { address: "10.0.0.2", port: 15002 } };
  const job = (id: string, more: object): MomJob =>
    ({ id, run_count: 3, attrs: { executable: "x" }, script: null, cookie: "", ...more }) as unknown as MomJob;
  send({ link: 1, type: "mom-start", data: { jobs: [job("1.s", { sisters: { secret: "", hosts } })] } });
  run(1);
  send({ link: 2, type: "mom-start", data: { jobs: [job("1.s", { sisters: { secret: "", hosts } }), job("2.s", {})] } });
  run(2);
  assert.deepEqual(
    sent.map(({ sisters }) => sisters),
    [{ secret: "secret of 1.s, 3", hosts }, { secret: "secret of 1.s, 3", hosts }, undefined],
  );
  assert.notEqual(sent[0]?.cookie, sent[1]?.cookie);
});
