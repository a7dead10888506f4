// X11 for interactive jobs: names of displays, cookies in files, and which first messages pass.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { authorityFile, clientSetup, cookieFor, parseDisplay } from "#protocol/terminal/x11.ts";

// biome-ignore format: one row a case
const DISPLAYS: readonly (readonly [text: string, expected: ReturnType<typeof parseDisplay>])[] = [
  [":0",               { host: null, number: 0, screen: 0 }],
  [":1.2",             { host: null, number: 1, screen: 2 }],
  ["unix:3",           { host: null, number: 3, screen: 0 }],
  ["desk/unix:3.1",    { host: null, number: 3, screen: 1 }],
  ["localhost:10.0",   { host: "localhost", number: 10, screen: 0 }],
  ["desk.site.org:0",  { host: "desk.site.org", number: 0, screen: 0 }],
  ["",                 null],
  ["desk",             null],
  [":x",               null],
  [":99999",           null],
  ["a b:0",            null],
];

test("names of displays", () => {
  for (const [text, expected] of DISPLAYS) assert.deepEqual(parseDisplay(text), expected, text);
});

const [OURS, REAL] = [Buffer.alloc(16, 0xa1), Buffer.alloc(16, 0x5e)];

function entry(family: number, ...fields: readonly (string | Buffer)[]): Buffer {
  const number = Buffer.alloc(2);
  number.writeUInt16BE(family, 0);
  const parts = fields.map((field) => {
    const length = Buffer.alloc(2);
    length.writeUInt16BE(field.length, 0);
    return Buffer.concat([length, Buffer.from(field as Buffer)]);
  });
  return Buffer.concat([number, ...parts]);
}

test("the cookie of a display is found in a file of many, and in ours", () => {
  const file = Buffer.concat([
    entry(256, "desk", "1", "MIT-MAGIC-COOKIE-1", Buffer.alloc(16, 1)),
    entry(256, "other", "0", "MIT-MAGIC-COOKIE-1", Buffer.alloc(16, 2)),
    entry(256, "desk", "0", "XDM-AUTHORIZATION-1", Buffer.alloc(16, 3)),
    entry(256, "desk", "0", "MIT-MAGIC-COOKIE-1", REAL),
  ]);
  const display = { host: null, number: 0, screen: 0 };
  assert.deepEqual(cookieFor(file, display, "desk"), REAL);
  assert.deepEqual(cookieFor(file, { ...display, host: "localhost" }, "desk"), REAL);
  assert.equal(cookieFor(file, { ...display, host: "elsewhere" }, "desk"), null);
  assert.equal(cookieFor(file, { ...display, number: 7 }, "desk"), null);
  assert.equal(cookieFor(file.subarray(0, -1), display, "desk"), null, "a torn entry is none");
  assert.deepEqual(cookieFor(authorityFile(12, OURS), { host: "localhost", number: 12, screen: 0 }, "x"), OURS);
});

/** An X client's first message. */
function hello(order: "B" | "l", cookie: Buffer, name = "MIT-MAGIC-COOKIE-1"): Buffer {
  const head = Buffer.alloc(12);
  head.write(order, 0);
  const write = (value: number, at: number): void => void (order === "B" ? head.writeUInt16BE(value, at) : head.writeUInt16LE(value, at));
  write(11, 2);
  write(name.length, 6);
  write(cookie.length, 8);
  const pad = (bytes: Buffer): Buffer => Buffer.concat([bytes], (bytes.length + 3) & ~3);
  return Buffer.concat([head, pad(Buffer.from(name)), pad(cookie)]);
}

test("the job's cookie becomes the real one, in either byte order, with what follows it", () => {
  for (const order of ["B", "l"] as const) {
    const more = Buffer.from("more");
    assert.deepEqual(clientSetup(Buffer.concat([hello(order, OURS), more]), OURS, REAL), Buffer.concat([hello(order, REAL), more]));
    assert.deepEqual(clientSetup(hello(order, OURS), OURS, null), hello(order, Buffer.alloc(0), ""));
  }
});

test("a first message that is not whole is waited for", () => {
  const whole = hello("l", OURS);
  for (let length = 0; length < whole.length; length++) assert.equal(clientSetup(whole.subarray(0, length), OURS, REAL), null);
});

// biome-ignore format: one row a case
const REFUSED: readonly (readonly [what: string, bytes: Buffer])[] = [
  ["another cookie",   hello("l", Buffer.alloc(16, 0xa2))],
  ["a shorter one",    hello("l", OURS.subarray(0, 15))],
  ["none",             hello("B", Buffer.alloc(0), "")],
  ["another proof",    hello("B", OURS, "XDM-AUTHORIZATION-1")],
  ["no X client",      Buffer.from("GET / HTTP/1.1\r\n\r\n")],
  ["a huge name",      hello("l", OURS, "x".repeat(2000))],
];

test("who does not show the job's cookie is turned away", () => {
  for (const [what, bytes] of REFUSED) assert.equal(clientSetup(bytes, OURS, REAL), "refused", what);
});

test("whatever comes, the real cookie goes only where the job's was shown", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
      const result = clientSetup(Buffer.from(bytes), OURS, REAL);
      assert.ok(!(result instanceof Buffer) || Buffer.from(bytes).includes(OURS));
    }),
  );
});
