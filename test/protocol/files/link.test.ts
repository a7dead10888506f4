// Frames that carry files between hosts: in any pieces, and nothing that leads out of a tree.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { encodeFileFrame, FILE_FRAME_BYTES_MAX, type FileFrame, fileFrameDecoder } from "#protocol/files/link.ts";

const FRAMES: readonly FileFrame[] = [
  { kind: "open", job: "1[3].svr", run_count: 2 },
  { kind: "ready" },
  { kind: "put", path: "out/", name: "1.svr.OU" },
  { kind: "dir", path: "", mode: 0o750, mtime_s: 5 },
  { kind: "file", path: "a/b", size: 3, mode: 0o640, mtime_s: 0 },
  { kind: "data", bytes: Uint8Array.of(0, 1, 255) },
  { kind: "link", path: "a/c", target: "../../anywhere" },
  { kind: "end" },
  { kind: "done" },
  { kind: "get", path: "/in/*.dat" },
  { kind: "name", name: "x.dat" },
  { kind: "failed", text: "no", again: true },
  { kind: "grant", put: ["a"], get: [] },
];
const plain = (frame: FileFrame) => ("bytes" in frame ? { ...frame, bytes: [...frame.bytes] } : frame);

test("frames with files arrive as they were sent, however they are cut", () => {
  const all = Buffer.concat(FRAMES.map(encodeFileFrame));
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: all.length })), (cuts) => {
      const at = [0, ...cuts.sort((a, b) => a - b), all.length];
      const decoder = fileFrameDecoder();
      const frames = at.slice(1).flatMap((end, index) => decoder.push(all.subarray(at[index], end)));
      assert.deepEqual(frames.map(plain), FRAMES.map(plain));
    }),
  );
});

test("a frame that comes byte by byte is not copied anew for each byte", () => {
  const all = encodeFileFrame({ kind: "data", bytes: new Uint8Array(FILE_FRAME_BYTES_MAX).fill(7) });
  const decoder = fileFrameDecoder();
  const begin_ms = performance.now();
  let frames = 0;
  for (let at = 0; at < all.length; at++) frames += decoder.push(all.subarray(at, at + 1)).length;
  assert.equal(frames, 1);
  // Copies of everything for each byte would be 34 GB.
  assert.ok(performance.now() - begin_ms < 3000);
});

test("data that was decoded stays when the piece is overwritten", () => {
  const all = encodeFileFrame({ kind: "data", bytes: Uint8Array.of(1, 2, 3) });
  const [frame] = fileFrameDecoder().push(all);
  all.fill(0);
  assert.deepEqual(frame !== undefined && plain(frame), { kind: "data", bytes: [1, 2, 3] });
});

test("the first frame alone is read, and the rest stays for the worker", () => {
  const [open, ...others] = FRAMES.map(encodeFileFrame);
  const decoder = fileFrameDecoder();
  assert.equal(decoder.first((open as Buffer).subarray(0, 7)), null);
  assert.deepEqual(decoder.first(Buffer.concat([(open as Buffer).subarray(7), ...others])), FRAMES[0]);
  assert.deepEqual(decoder.rest(), Buffer.concat(others));
});

const frame = (kind: number, text: string, length = Buffer.byteLength(text)): Buffer => {
  const header = Buffer.alloc(5);
  header.writeUInt8(kind, 0);
  header.writeUInt32BE(length, 1);
  return Buffer.concat([header, Buffer.from(text)]);
};
const FILE = 6;
const file = (path: string, more: object = {}): Buffer => frame(FILE, JSON.stringify({ path, size: 1, mode: 0, mtime_s: 0, ...more }));

// biome-ignore format: one row a case
const BROKEN: readonly (readonly [what: string, bytes: Buffer])[] = [
  ["a kind there is not",           frame(13, "{}")],
  ["too long",                      frame(0, "", FILE_FRAME_BYTES_MAX + 1)],
  ["no JSON",                       frame(1, "{")],
  ["no object",                     frame(1, "7")],
  ["a job that is no text",         frame(1, '{"job":7,"run_count":1}')],
  ["a path out of the tree",        file("../x")],
  ["a path out of it, further in",  file("a/../../x")],
  ["an absolute path",              file("/etc/x")],
  ["an empty name in a path",       file("a//b")],
  ["a byte 0",                      file("a\0b")],
  ["a tree without end",            file(Array.from({ length: 101 }, () => "d").join("/"))],
  ["a negative size",               file("a", { size: -1 })],
  ["a size beyond all numbers",     file("a", { size: 1e300 })],
  ["a name with a slash",           frame(3, '{"path":"/x","name":"a/b"}')],
  ["a name of two dots",            frame(3, '{"path":"/x","name":".."}')],
  ["a grant of no list",            frame(12, '{"put":"/","get":[]}')],
];

for (const [what, bytes] of BROKEN)
  test(`a frame that is wrong ends the conversation: ${what}`, () => {
    assert.throws(() => fileFrameDecoder().push(bytes), { name: "FileFrameError" });
  });
