import assert from "node:assert/strict";
import { test } from "node:test";
import type { Frame } from "#protocol/wire/frame.ts";
import { encodeFrame, encodePartFrame, FrameError, frameDecoder } from "#protocol/wire/frame.ts";
import { prng } from "#support/prng.ts";

const decodeAll = (chunks: readonly string[], limit = 1000): Frame[] => {
  const frames: Frame[] = [];
  const decoder = frameDecoder(limit);
  for (const chunk of chunks) decoder.push(chunk, (frame) => frames.push(frame));
  return frames;
};
const failure = (chunks: readonly string[], limit = 1000, types?: ReadonlySet<string>): string => {
  const decoder = frameDecoder(limit, types);
  try {
    for (const chunk of chunks) decoder.push(chunk, () => undefined);
  } catch (error) {
    assert.ok(error instanceof FrameError);
    return error.reason;
  }
  return "none";
};

test("frame: however a stream is cut, the same frames come out", () => {
  const messages = [{ a: 1 }, { text: 'form feed \f, newline \n, quote ", ümlaut, \u{1f600}' }, {}, { long: "x".repeat(300) }];
  const stream = messages.map((data, at) => encodeFrame(`t${at}`, data)).join("");
  const whole = decodeAll([stream]);
  assert.deepEqual(
    whole,
    messages.map((data, at) => ({ type: `t${at}`, data })),
  );
  const random = prng("frame cuts");
  for (let round = 0; round < 200; round++) {
    const chunks: string[] = [];
    for (let at = 0; at < stream.length; ) {
      const size = random.int(1, 60);
      chunks.push(stream.slice(at, at + size));
      at += size;
    }
    assert.deepEqual(decodeAll(chunks), whole);
  }
});

test("frame: a part of ready-made items equals the encoded part", () => {
  const items = [
    { id: "1.svr", attrs: { a: "b" } },
    { id: "2.svr", attrs: {} },
  ];
  assert.equal(
    encodePartFrame(
      7,
      items.map((item) => JSON.stringify(item)),
    ),
    encodeFrame("part", { id: 7, items }),
  );
});

test("frame: what breaks the protocol is told apart", () => {
  const types = new Set(["request"]);
  const rows: [chunks: string[], reason: string][] = [
    [['{"type":"request","data":1}\f'], "none"],
    [["x".repeat(1001)], "too-long"],
    [["x".repeat(600), "x".repeat(600)], "too-long"],
    [[`{"type":"request","data":"${"x".repeat(1000)}"}\f`], "too-long"],
    [["nonsense\f"], "not-json"],
    [["\f"], "not-json"],
    [["null\f"], "not-a-frame"],
    [["[]\f"], "not-a-frame"],
    [["7\f"], "not-a-frame"],
    [['{"data":1}\f'], "not-a-frame"],
    [['{"type":7}\f'], "not-a-frame"],
    [['{"type":"reply"}\f'], "type-refused"],
    [['{"type":"__proto__"}\f'], "type-refused"],
    [['{"type":"connect"}\f'], "type-refused"],
  ];
  for (const [chunks, reason] of rows) assert.equal(failure(chunks, 1000, types), reason, JSON.stringify(chunks).slice(0, 60));
});

test("frame: the limit may grow, and a frame just fits it", () => {
  const text = encodeFrame("t", "x".repeat(100));
  const fitting = text.length - 1;
  assert.equal(failure([text], fitting), "none");
  assert.equal(failure([text], fitting - 1), "too-long");
  const decoder = frameDecoder(10);
  decoder.limit = 1000;
  decoder.push(text, () => undefined);
  assert.equal(decoder.pending, 0);
});

test("frame: work is linear: of a frame in 2,000 chunks every character is searched and joined once", () => {
  const text = encodeFrame("t", "x".repeat(80_000));
  const decoder = frameDecoder(10_000_000);
  const { indexOf } = String.prototype;
  const { join } = Array.prototype;
  let [frames, searched, joined] = [0, 0, 0];
  const countSearched = function (this: string, word: string, from = 0): number {
    searched += this.length - from;
    return indexOf.call(this, word, from);
  };
  const countJoined = function (this: unknown[], between?: string): string {
    const whole = join.call(this, between);
    joined += whole.length;
    return whole;
  };
  Object.assign(String.prototype, { indexOf: countSearched });
  Object.assign(Array.prototype, { join: countJoined });
  try {
    for (let at = 0; at < text.length; at += 40) decoder.push(text.slice(at, at + 40), () => frames++);
  } finally {
    Object.assign(String.prototype, { indexOf });
    Object.assign(Array.prototype, { join });
  }
  assert.equal(frames, 1);
  // A decoder that joins at every chunk handles 80 million characters here.
  assert.ok(searched >= text.length && searched < 2 * text.length, `${searched} searched`);
  assert.ok(joined >= text.length - 40 && joined < 2 * text.length, `${joined} joined`);
});
