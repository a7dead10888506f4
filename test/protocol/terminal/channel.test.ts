// The channel of an interactive job's terminal: frames in any pieces, and no access without the job's secret.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import fc from "fast-check";
import { dialTerminal, listenForTerminal, type TerminalChannel } from "#protocol/terminal/channel.ts";
import { encodeTerminalFrame, FRAME_BYTES_MAX, type TerminalFrame, terminalFrameDecoder } from "#protocol/terminal/link.ts";

const ON_THIS_HOST = { network: false };
const SHAPE = { rows: 24, columns: 80, term: "xterm-256color", controls: [3, 28, 127, 21, 4, 26] };
const FRAMES: readonly TerminalFrame[] = [
  { kind: "hello", job: "1.svr" },
  { kind: "shape", shape: SHAPE },
  { kind: "data", bytes: Uint8Array.of(0, 1, 255) },
  { kind: "window", size: { rows: 0, columns: 65535 } },
  { kind: "end" },
  { kind: "shape", shape: { ...SHAPE, x11: { cookie: "0123456789abcdef".repeat(2), screen: 1 } } },
  { kind: "x-open", id: 1 },
  { kind: "x-data", id: 4294967295, bytes: Uint8Array.of(7) },
  { kind: "x-close", id: 0 },
];
const plain = (frame: TerminalFrame) => ("bytes" in frame ? { ...frame, bytes: [...frame.bytes] } : frame);

test("frames arrive as they were sent, however they are cut", () => {
  const all = Buffer.concat(FRAMES.map(encodeTerminalFrame));
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: all.length })), (cuts) => {
      const at = [0, ...cuts.sort((a, b) => a - b), all.length];
      const decoder = terminalFrameDecoder();
      const frames = at.slice(1).flatMap((end, index) => decoder.push(all.subarray(at[index], end)));
      assert.deepEqual(frames.map(plain), FRAMES.map(plain));
    }),
  );
});

test("data of any length goes out in frames that the other side takes", () => {
  const bytes = Buffer.alloc(FRAME_BYTES_MAX * 2 + 1, 7);
  const frames = terminalFrameDecoder().push(encodeTerminalFrame({ kind: "data", bytes }));
  assert.deepEqual(
    frames.map((frame) => frame.kind === "data" && frame.bytes.length),
    [FRAME_BYTES_MAX, FRAME_BYTES_MAX, 1],
  );
});

const frame = (kind: number, text: string, length = Buffer.byteLength(text)): Buffer => {
  const header = Buffer.alloc(5);
  header.writeUInt8(kind, 0);
  header.writeUInt32BE(length, 1);
  return Buffer.concat([header, Buffer.from(text)]);
};

// biome-ignore format: one row a case
const BROKEN: readonly (readonly [what: string, bytes: Buffer])[] = [
  ["a kind there is not",          frame(9, "")],
  ["too long",                     frame(0, "", FRAME_BYTES_MAX + 1)],
  ["no JSON",                      frame(1, "{")],
  ["no object",                    frame(1, "7")],
  ["a hello without a job",        frame(1, "{}")],
  ["a window without columns",     frame(3, '{"rows":3}')],
  ["a window of no integer",       frame(3, '{"rows":3.5,"columns":1}')],
  ["a window too large",           frame(3, '{"rows":65536,"columns":1}')],
  ["TERM that is no name",         frame(2, JSON.stringify({ ...SHAPE, term: "x\ny" }))],
  ["TERM that is empty",           frame(2, JSON.stringify({ ...SHAPE, term: "" }))],
  ["too few control characters",   frame(2, JSON.stringify({ ...SHAPE, controls: [1, 2, 3] }))],
  ["an X client without number",   frame(5, "123")],
  ["a cookie that is none",        frame(2, JSON.stringify({ ...SHAPE, x11: { cookie: "x", screen: 0 } }))],
  ["a control that is no byte",    frame(2, JSON.stringify({ ...SHAPE, controls: [1, 2, 3, 4, 5, 256] }))],
];

for (const [what, bytes] of BROKEN)
  test(`a frame that is wrong ends the conversation: ${what}`, () => {
    assert.throws(() => terminalFrameDecoder().push(bytes), { name: "TerminalFrameError" });
  });

test("whoever does not know the secret gets no byte and does not keep the relay out; the first who knows it is the only one", async () => {
  const heard: unknown[] = [];
  const taken = Promise.withResolvers<TerminalChannel>();
  const closed = Promise.withResolvers<void>();
  const listener = await listenForTerminal((channel) => {
    taken.resolve(channel);
    return { onFrame: (each) => heard.push(plain(each)), onClose: () => closed.resolve() };
  }, ON_THIS_HOST);
  const silent = connect(`\0${listener.ticket.socket}`);
  let got = 0;
  silent.on("data", (bytes) => {
    got += bytes.length;
  });
  silent.on("error", () => undefined);
  const nothing = () => ({ onFrame: () => assert.fail("a stranger hears nothing"), onClose: () => undefined });
  await assert.rejects(dialTerminal({ ...listener.ticket, secret: "0".repeat(64) }, nothing));
  const answers: unknown[] = [];
  const ended = Promise.withResolvers<void>();
  const relay = await dialTerminal(listener.ticket, () => ({
    onFrame: (each) => answers.push(plain(each)),
    onClose: () => ended.resolve(),
  }));
  relay.send({ kind: "hello", job: "1.svr" });
  const channel = await taken.promise;
  channel.send({ kind: "shape", shape: SHAPE });
  await assert.rejects(dialTerminal(listener.ticket, nothing), "it listens no more");
  relay.send({ kind: "end" });
  relay.finish();
  await closed.promise;
  channel.destroy();
  await ended.promise;
  assert.deepEqual(heard, [{ kind: "hello", job: "1.svr" }, { kind: "end" }]);
  assert.deepEqual(answers, [{ kind: "shape", shape: SHAPE }]);
  assert.equal(got, 0);
  silent.destroy();
  listener.close();
});

test("connections that say nothing, however many, do not keep the relay out", async () => {
  const taken = Promise.withResolvers<void>();
  const listener = await listenForTerminal(() => {
    taken.resolve();
    return { onFrame: () => undefined, onClose: () => undefined };
  }, ON_THIS_HOST);
  const silent = await Promise.all(
    Array.from({ length: 40 }, () => {
      const socket = connect(`\0${listener.ticket.socket}`);
      socket.on("error", () => undefined);
      return new Promise<typeof socket>((resolve) => socket.once("connect", () => resolve(socket)));
    }),
  );
  const relay = await dialTerminal(listener.ticket, () => ({ onFrame: () => undefined, onClose: () => undefined }));
  await taken.promise;
  relay.destroy();
  for (const socket of silent) socket.destroy();
});

test("a ticket is like no other", async () => {
  const [a, b] = await Promise.all([1, 2].map(() => listenForTerminal(() => assert.fail("nobody calls"), ON_THIS_HOST)));
  assert.notEqual(a?.ticket.socket, b?.ticket.socket);
  assert.notEqual(a?.ticket.secret, b?.ticket.secret);
  assert.match(a?.ticket.secret ?? "", /^[0-9a-f]{64}$/);
  a?.close();
  b?.close();
});

test("a relay on another host comes by TCP: the secret decides, and the port closes behind the first who knows it", async () => {
  const heard: unknown[] = [];
  const closed = Promise.withResolvers<void>();
  const listener = await listenForTerminal(
    (channel) => {
      channel.send({ kind: "shape", shape: SHAPE });
      return { onFrame: (each) => heard.push(plain(each)), onClose: () => closed.resolve() };
    },
    { network: true },
  );
  const { port = 0, secret } = listener.ticket;
  assert.ok(port > 0);
  // The name of the socket means nothing on another host.
  const far = { socket: `${listener.ticket.socket}-elsewhere`, secret, port, address: "127.0.0.1" };
  const nothing = () => ({ onFrame: () => assert.fail("a stranger hears nothing"), onClose: () => undefined });
  await assert.rejects(dialTerminal({ ...far, secret: "0".repeat(64) }, nothing));
  const { address: _, ...without } = far;
  await assert.rejects(dialTerminal(without, nothing), /ECONNREFUSED/, "nothing is dialled that the server has not named");
  const silent = Array.from({ length: 40 }, () => connect(port, "127.0.0.1").on("error", () => undefined));
  const shaped = Promise.withResolvers<void>();
  const relay = await dialTerminal(far, () => ({ onFrame: () => shaped.resolve(), onClose: () => undefined }));
  await shaped.promise;
  await assert.rejects(dialTerminal(far, nothing), /ECONNREFUSED/, "it listens no more");
  relay.send({ kind: "hello", job: "1.svr" });
  relay.finish();
  await closed.promise;
  assert.deepEqual(heard, [{ kind: "hello", job: "1.svr" }]);
  for (const socket of silent) socket.destroy();
});

test("in a complex on one host no port is opened", async () => {
  const listener = await listenForTerminal(() => assert.fail("nobody calls"), ON_THIS_HOST);
  assert.equal(listener.ticket.port, undefined);
  listener.close();
});
