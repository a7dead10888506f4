// The bytes between launcher and resident: frames in arbitrary pieces, requests, limits.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FrameFault, frameHead, frameReader, HEADER_BYTES, outputFrames, PIECE_BYTES_MAX, REQUEST_BYTES_MAX } from "#resident/frame.ts";
import { parseRequest } from "#resident/request.ts";
import { SETTINGS_DEFAULT, settingsOf } from "#resident/settings.ts";

function frame(letter: string, payload: Buffer): Buffer {
  const head = Buffer.alloc(HEADER_BYTES);
  head.writeUInt32BE(payload.length, 0);
  head.write(letter, 4, "latin1");
  return Buffer.concat([head, payload]);
}

test("frames of a launcher are the same however they are cut into pieces", () => {
  const frames = fc.array(fc.record({ letter: fc.constantFrom("Q", "I"), payload: fc.uint8Array({ maxLength: 300 }) }), { maxLength: 6 });
  fc.assert(
    fc.property(frames, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 }), (sent, cuts) => {
      const bytes = Buffer.concat(sent.map(({ letter, payload }) => frame(letter, Buffer.from(payload))));
      const read = frameReader();
      const received = [];
      for (let at = 0, i = 0; at < bytes.length; i++) {
        const to = at + (cuts[i % cuts.length] as number);
        received.push(...read(bytes.subarray(at, to)).map(({ letter, payload }) => ({ letter, payload: [...payload] })));
        at = to;
      }
      assert.deepEqual(
        received,
        sent.map(({ letter, payload }) => ({ letter, payload: [...payload] })),
      );
    }),
    { numRuns: 200 },
  );
});

test("a frame of another kind or beyond its limit is refused at its head, before its bytes are kept", () => {
  const heads: readonly (readonly [letter: string, bytes: number])[] = [
    ["A", 0],
    ["\0", 0],
    ["Q", REQUEST_BYTES_MAX + 1],
    ["I", PIECE_BYTES_MAX + 1],
    ["I", 0xffff_ffff],
  ];
  for (const [letter, bytes] of heads) {
    const head = Buffer.alloc(HEADER_BYTES);
    head.writeUInt32BE(bytes, 0);
    head.write(letter, 4, "latin1");
    assert.throws(() => frameReader()(head), FrameFault, `${letter} ${bytes}`);
  }
});

test("random bytes are frames or a fault, never anything else", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 10 }), (pieces) => {
      const read = frameReader();
      try {
        for (const piece of pieces) for (const each of read(Buffer.from(piece))) assert.match(each.letter, /^[QI]$/);
      } catch (error) {
        assert.ok(error instanceof FrameFault, String(error));
      }
    }),
    { numRuns: 500 },
  );
});

test("output is cut into frames that a launcher takes, between any bytes", () => {
  const text = "ä".repeat(PIECE_BYTES_MAX);
  const frames = outputFrames("O", text);
  assert.equal(frames.length, 4);
  assert.deepEqual(frames[0], frameHead("O", PIECE_BYTES_MAX));
  assert.equal(Buffer.concat(frames.filter((_, index) => index % 2 === 1)).toString(), text);
  assert.deepEqual(outputFrames("E", ""), []);
});

/** In the form that native/conversation.c writes. */
function requestBytes(parts: readonly string[]): Buffer {
  return Buffer.from(parts.map((part) => `${part}\0`).join(""));
}

test("a request is taken apart as the launcher put it together", () => {
  const request = parseRequest(
    requestBytes(["here\nand now\n", "5", "qstat", "/tmp", "3", "-f", "", "1.svr", "4", "A=1", "A=2", "__proto__=x", "E="]),
  );
  assert.ok(request !== null);
  const { env, ...rest } = request;
  assert.deepEqual(rest, {
    circumstances: "here\nand now\n",
    stdin_is_tty: true,
    stdout_is_tty: false,
    stderr_is_tty: true,
    program: "qstat",
    cwd: "/tmp",
    argv: ["-f", "", "1.svr"],
  });
  assert.deepEqual(Object.entries(env), [
    ["A", "1"],
    ["__proto__", "x"],
    ["E", ""],
  ]);
});

test("what is no request is none: counts that do not fit, a name with a slash, a directory without one", () => {
  const good = ["c", "0", "qstat", "/", "1", "-f", "1", "A=1"];
  assert.ok(parseRequest(requestBytes(good)) !== null);
  const bad: readonly (readonly string[])[] = [
    good.slice(0, -1),
    [...good, "more"],
    good.with(1, "8"),
    good.with(2, "../qstat"),
    good.with(2, ""),
    good.with(3, "tmp"),
    good.with(4, "2"),
    good.with(4, "-1"),
    good.with(4, "1e1"),
    good.with(6, "99999999999"),
    [],
  ];
  for (const parts of bad) assert.equal(parseRequest(requestBytes(parts)), null, JSON.stringify(parts));
  assert.equal(parseRequest(requestBytes(["c", "0", "qstat", "/", "0", "0"]).subarray(0, -1)), null, "no zero at the end");
});

test("limits of a resident: whole numbers above 0 count, everything else is as if it were missing", () => {
  assert.deepEqual(settingsOf({}), SETTINGS_DEFAULT);
  assert.deepEqual(settingsOf({ PARTITA_RESIDENT_IDLE: "5", PARTITA_RESIDENT_COMMANDS: "1", PARTITA_RESIDENT_MEMORY: "80" }), {
    ...SETTINGS_DEFAULT,
    idle_s: 5,
    commands_max: 1,
    memory_mb_max: 80,
  });
  for (const text of ["0", "-3", "x", "1.5", "99999999999"])
    assert.equal(settingsOf({ PARTITA_RESIDENT_IDLE: text }).idle_s, SETTINGS_DEFAULT.idle_s, text);
});
