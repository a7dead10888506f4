// Commands to a group of moms: what counts, what is repeated, and what goes over connections.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { DATAGRAM_BYTES_MAX } from "#protocol/datagram/packet.ts";
import { COMMAND_BYTES_MAX, openPart, partsOf, readPart, sealPart } from "#protocol/multicast/command-packet.ts";
import { aesGcm } from "#protocol/udp/aes-gcm.ts";
import { makeSigner, verifier } from "#protocol/udp/ed25519.ts";
import { nth } from "#support/assert.ts";
import { type Bed, bed, MINUTE_MS, type Mom, ROTATION_MS, SETTINGS } from "./bed.ts";

const doneBy = ({ moms }: Bed): string[] => moms.map(({ done }) => done.join(" "));

test("one datagram reaches all moms, and each carries the command out once", () => {
  const it = bed(3);
  assert.deepEqual(it.command("1"), []);
  assert.equal(it.sent.length, 1);
  const [bytes] = it.sent;
  it.multicast([...it.sent, ...it.sent]);
  assert.deepEqual(doneBy(it), ["1", "1", "1"]);
  assert.deepEqual(it.moms[0]?.seat.dropped.replayed, 1);
  it.clock.pass(MINUTE_MS);
  assert.equal(it.sent.length, 1, "no repeat after all have acknowledged");
  assert.deepEqual([it.desk.counts.commands, it.desk.counts.datagrams, it.desk.counts.copies], [1, 1, 0]);
  assert.equal(Buffer.from(bytes ?? []).includes("mom-discard"), false, "encrypted");
});

test("a mom that does not acknowledge gets the command again, and then over its connection", () => {
  const it = bed(2);
  const [deaf, mute] = it.moms as [Mom, Mom];
  deaf.is_deaf = true;
  mute.is_mute = true;
  it.command("1");
  it.multicast();
  it.clock.pass(SETTINGS.interval_ms * SETTINGS.repeats);
  assert.equal(it.sent.length, SETTINGS.repeats);
  it.multicast();
  assert.deepEqual(doneBy(it), ["", "1"]);
  it.clock.pass(SETTINGS.interval_ms);
  it.readAll();
  assert.deepEqual(doneBy(it), ["1", "1"]);
  assert.equal(it.desk.counts.copies, 2);
});

test("commands and frames keep their order", () => {
  const it = bed(2);
  const [first, second] = it.moms as [Mom, Mom];
  // The datagram overtakes a frame of the connection.
  it.frame(first, "start");
  it.command("end");
  it.multicast();
  assert.deepEqual(doneBy(it), ["", "end"]);
  it.read(first);
  assert.deepEqual(doneBy(it), ["start end", "end"]);
  // A frame that follows a lost command takes the command with it.
  second.is_deaf = true;
  it.command("2");
  it.command("3");
  it.frame(second, "4");
  it.read(second);
  assert.equal(second.done.join(" "), "end 2 3 4");
  // The datagrams of the commands arrive in the wrong order.
  it.multicast(it.sent.splice(0).reverse());
  it.readAll();
  assert.equal(first.done.join(" "), "start end 2 3");
});

test("a long command comes in several datagrams, which may arrive in any order; what is too long goes over connections", () => {
  const it = bed(2);
  const job = "x".repeat(20_000);
  assert.deepEqual(it.desk.command(it.links, "mom-discard", { job }), []);
  assert.ok(it.sent.length > 10 && it.sent.every(({ length }) => length <= DATAGRAM_BYTES_MAX));
  it.multicast(it.sent.splice(0).reverse());
  assert.deepEqual(
    it.moms.map(({ done }) => done),
    [[job], [job]],
  );
  assert.deepEqual(it.desk.command(it.links, "mom-discard", { job: "x".repeat(COMMAND_BYTES_MAX) }), it.links);
});

test("a command to more moms than one datagram can name", () => {
  const it = bed(400);
  assert.deepEqual(it.command("1"), []);
  assert.ok(it.sent.length > 1 && it.sent.length <= 5);
  assert.ok(it.sent.every(({ length }) => length <= DATAGRAM_BYTES_MAX));
  it.multicast();
  assert.ok(it.moms.every(({ done }) => done.join() === "1"));
  it.command("x".repeat(3000));
  it.multicast();
  assert.ok(it.moms.every(({ done }) => done.length === 2));
});

test("a mom that has left cannot read later commands", () => {
  const it = bed(3);
  const [gone, ...others] = it.moms as [Mom, Mom, Mom];
  it.desk.dismiss(gone.link);
  const links = others.map(({ link }) => link);
  assert.deepEqual(it.command("early", links), links, "until there is a new key, commands go over connections");
  it.clock.pass(10_000);
  it.readAll();
  assert.deepEqual(it.command("late", links), []);
  it.multicast();
  assert.deepEqual(doneBy(it), ["", "late", "late"]);
  assert.deepEqual(gone.seat.dropped.unknown, 1);
  const keys = gone.order?.keys;
  assert.ok(keys != null);
  const key = Buffer.from(keys.key, "base64");
  it.command("later", links);
  assert.equal(openPart(aesGcm, { ...keys, key }, nth(it.sent, 0)), null);
});

test("many moms that leave one after the other cause one new key", () => {
  const it = bed(20);
  for (const link of it.links.slice(0, 10)) it.desk.dismiss(link);
  it.clock.pass(MINUTE_MS);
  const keys = (mom: Mom): number => mom.wire.filter(({ type }) => type === "mom-group").length;
  for (const mom of it.moms.slice(10)) assert.equal(keys(mom), 1);
  // One host connects and leaves twice a second, for a minute.
  for (let link = 100; link < 220; link++) {
    it.join(link);
    it.clock.pass(500);
    it.desk.dismiss(link);
  }
  it.clock.pass(MINUTE_MS);
  const [first] = it.moms.slice(10) as [Mom];
  assert.ok(keys(first) >= 6 && keys(first) <= 9, `${keys(first)} keys in a minute`);
});

test("the key is replaced after its time", () => {
  const it = bed(1);
  const [mom] = it.moms as [Mom];
  const first = mom.order?.keys?.key;
  it.clock.pass(ROTATION_MS);
  it.read(mom);
  assert.notEqual(mom.order?.keys?.key, first);
  it.command("1");
  it.multicast();
  assert.deepEqual(mom.done, ["1"]);
});

test("a member cannot send commands in the name of the server, nor can others", () => {
  const it = bed(2);
  const [mom, bad] = it.moms as [Mom, Mom];
  const keys = bad.order?.keys;
  assert.ok(keys != null);
  const own = { ...keys, key: Buffer.from(keys.key, "base64") };
  const [part] = partsOf(1, Buffer.from('["mom-discard",{"job":"evil"}]'), [{ member: mom.order?.keys?.member ?? 0, position: 0 }]);
  assert.ok(part !== undefined);
  const forge = (counter: number): Uint8Array => sealPart(aesGcm, makeSigner().sign, own, counter, part);
  for (let counter = 0; counter < 10; counter++) mom.seat.datagram(forge(counter));
  const stranger = sealPart(aesGcm, makeSigner().sign, { ...own, key: randomBytes(32) }, 20, part);
  mom.seat.datagram(stranger);
  mom.seat.datagram(randomBytes(DATAGRAM_BYTES_MAX + 1));
  mom.seat.datagram(randomBytes(100));
  mom.seat.datagram(new Uint8Array(0));
  assert.deepEqual(mom.done, []);
  assert.deepEqual(
    [mom.seat.dropped.forged, mom.seat.dropped.foreign, mom.seat.dropped.oversized, mom.seat.dropped.unknown],
    [10, 1, 1, 2],
  );
  assert.equal(it.notes.filter((text) => text.includes("in the name of the server")).length, 1, "logged once");
  // A forged counter does not block the server's.
  it.command("good");
  it.multicast();
  assert.deepEqual(mom.done, ["good"]);
});

test("datagrams of an earlier connection or start of the server do not count", () => {
  const it = bed(1);
  const [mom] = it.moms as [Mom];
  it.command("1");
  const old = it.sent.splice(0);
  it.multicast(old);
  mom.seat.reset();
  it.desk.dismiss(mom.link);
  const again = it.join(2);
  it.clock.pass(10_000);
  it.read(again);
  it.multicast(old);
  assert.deepEqual([mom.done, again.done], [["1"], []]);
});

test("a flood of datagrams is not decrypted without bound", () => {
  const it = bed(1);
  const [mom] = it.moms as [Mom];
  it.command("1");
  const [bytes] = it.sent.splice(0);
  for (let sent = 0; sent < 3000; sent++) {
    const forged = Uint8Array.from(bytes ?? []);
    new DataView(forged.buffer).setUint32(14, 1000 + sent);
    mom.seat.datagram(forged);
  }
  assert.deepEqual([mom.seat.dropped.foreign, mom.seat.dropped.flood], [1000, 2000]);
  it.clock.pass(SETTINGS.interval_ms * (SETTINGS.repeats + 1));
  it.read(mom);
  assert.deepEqual(mom.done, ["1"]);
});

test("a mom that never acknowledges gets commands over its connection at once, and is tried again each minute", () => {
  const it = bed(2);
  const [mom] = it.moms as [Mom, Mom];
  mom.is_deaf = true;
  for (const job of ["1", "2", "3"]) {
    it.command(job);
    it.multicast();
    it.clock.pass(1000);
  }
  assert.deepEqual(it.notes, ["multicast: no acknowledgement from n1: commands go over these connections"]);
  assert.equal(it.desk.hears(mom.link), false);
  it.read(mom);
  assert.deepEqual(it.command("4"), [mom.link]);
  it.frame(mom, "4");
  it.clock.pass(MINUTE_MS);
  mom.is_deaf = false;
  it.read(mom);
  assert.deepEqual(it.command("5"), [], "tried again");
  it.read(mom);
  assert.deepEqual(mom.done, ["1", "2", "3", "4", "5"], "it did not wait for the repeats");
  it.multicast();
  assert.equal(it.desk.hears(mom.link), true);
  assert.deepEqual(mom.done, ["1", "2", "3", "4", "5"]);
});

test("switched off, all moms forget the key, and commands go over connections", () => {
  const it = bed(2);
  const [mom] = it.moms as [Mom, Mom];
  mom.is_deaf = true;
  it.command("1");
  it.desk.configure(null);
  it.readAll();
  it.multicast();
  assert.deepEqual(doneBy(it), ["1", "1"]);
  assert.deepEqual(mom.order, { keys: null });
  assert.deepEqual(it.command("2"), it.links);
  it.desk.configure({ ...SETTINGS, moms_min: 3 });
  it.readAll();
  assert.deepEqual(it.command("3"), it.links, "too few moms");
});

test("when the server ends, what is not acknowledged goes over connections at once", () => {
  const it = bed(2);
  it.command("quit");
  it.desk.close();
  it.readAll();
  it.multicast();
  assert.deepEqual(doneBy(it), ["quit", "quit"]);
  assert.deepEqual(it.command("later"), it.links);
});

test("malformed contents of the server's own making are refused", () => {
  const signer = makeSigner();
  const keys = { channel: "0123456789abcdef", key: randomBytes(32), boot: "b" };
  const said = (bytes: Uint8Array) => readPart({ signature: new Uint8Array(64), signed: new Uint8Array(), said: bytes });
  assert.equal(said(Uint8Array.from([0, 0, 0, 1, 0, 0, 0, 0])), null, "no parts");
  assert.equal(said(Uint8Array.from([0, 0, 0, 1, 1, 1, 0, 0])), null, "a part beyond the last");
  assert.equal(said(Uint8Array.from([0, 0, 0, 1, 0, 1, 0, 9])), null, "more members than bytes");
  assert.equal(said(Uint8Array.from([0, 0, 0, 1, 0, 65, 0, 0])), null, "too many parts");
  const [part] = partsOf(7, Buffer.from("text"), [{ member: 65_535, position: 2 ** 32 - 1 }]);
  assert.ok(part !== undefined);
  const opened = openPart(aesGcm, keys, sealPart(aesGcm, signer.sign, keys, 5, part));
  assert.ok(opened !== null && verifier()(signer.public_key, opened.signed, opened.signature));
  const read = readPart(opened);
  assert.deepEqual([read?.command, read?.to, Buffer.from(read?.text ?? []).toString()], [7, part.to, "text"]);
});
