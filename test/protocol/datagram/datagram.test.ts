// Datagrams of moms: which of them count, and what the server does with the others.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { type ChannelKeys, type Cipher, DATAGRAM_BYTES_MAX, TAG_BYTES, TEXT_BYTES_MAX } from "#protocol/datagram/packet.ts";
import { replayWindow } from "#protocol/datagram/replay-window.ts";
import { StatusChannel } from "#protocol/datagram/status-channel.ts";
import { DROPS, StatusDesk } from "#protocol/datagram/status-desk.ts";
import { aesGcm } from "#protocol/udp/aes-gcm.ts";

const ROTATION_MS = 3_600_000;
const LINK = 7;

type Bed = {
  readonly desk: StatusDesk;
  /** number of texts that were decrypted */
  readonly opens: () => number;
  mom(keys: ChannelKeys): StatusChannel;
  /** `report 5`, or the reason why it was dropped */
  arrives(bytes: Uint8Array, now_ms?: number): string;
};

function bed(boot = "boot1"): Bed {
  let opens = 0;
  const cipher: Cipher = {
    seal: aesGcm.seal,
    open(...args) {
      opens++;
      return aesGcm.open(...args);
    },
  };
  const desk = new StatusDesk({ cipher, random: randomBytes, boot, rotation_ms: ROTATION_MS });
  return {
    desk,
    opens: () => opens,
    mom(keys) {
      const channel = new StatusChannel(aesGcm);
      channel.take(keys);
      return channel;
    },
    arrives(bytes, now_ms = 0) {
      const before = { ...desk.dropped };
      const opened = desk.open(bytes, now_ms);
      if (opened !== null) return opened.text;
      return DROPS.find((why) => desk.dropped[why] > before[why]) ?? "dropped and not counted";
    },
  };
}

test("a report arrives once, and its answer reaches its mom only", () => {
  const { desk, mom, arrives } = bed();
  const [one, other] = [mom(desk.admit(LINK, "N1", 0)), mom(desk.admit(LINK + 1, "n2", 0))];
  const bytes = one.seal("report 1");
  assert.ok(!Buffer.from(bytes).includes("report"), "encrypted");
  const opened = desk.open(bytes, 0);
  assert.deepEqual([opened?.link, opened?.text, opened?.is_due], [LINK, "report 1", false]);
  assert.equal(arrives(bytes), "replayed");
  const answer = opened?.answer("heard 1") ?? new Uint8Array();
  assert.equal(other.open(answer), null);
  assert.equal(one.open(answer), "heard 1");
  assert.equal(one.open(answer), null, "an answer counts once, too");
  assert.equal(arrives(answer), "unknown", "an answer sent back is no report");
  assert.equal(one.open(bytes), null, "nor is a report an answer");
  assert.equal(desk.opened, 1);
});

test("reports overtake one another, none counts twice, and those that are too old count as late", () => {
  const { desk, mom, arrives } = bed();
  const channel = mom(desk.admit(LINK, "n1", 0));
  const sealed = Array.from({ length: 100 }, (_, number) => channel.seal(`report ${number}`));
  const at = (number: number): Uint8Array => sealed[number] ?? new Uint8Array();
  for (const number of [3, 1, 2, 99, 36, 98]) assert.equal(arrives(at(number)), `report ${number}`);
  for (const number of [3, 1, 2, 35]) assert.equal(arrives(at(number)), "late", `${number}`);
  for (const number of [99, 36, 98]) assert.equal(arrives(at(number)), "replayed", `${number}`);
});

test("the window knows each of the last 64 counters, however they come", () => {
  for (let seed = 1; seed <= 50; seed++) {
    const window = replayWindow();
    const seen = new Set<number>();
    let [newest, state] = [-1, seed];
    for (let step = 0; step < 500; step++) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      const counter = Math.max(0, newest + ((state >>> 16) % 90) - 70);
      const expected = newest - counter >= 64 ? "late" : seen.has(counter) ? "replayed" : "new";
      assert.equal(window.look(counter), expected, `seed ${seed}, step ${step}: ${counter} after ${newest}`);
      if (expected !== "new") continue;
      window.note(counter);
      seen.add(counter);
      newest = Math.max(newest, counter);
    }
  }
});

test("what was not sealed for this mom and this start of the server is foreign", () => {
  const { desk, mom, arrives } = bed("boot1");
  const keys = desk.admit(LINK, "n1", 0);
  const claims: readonly (readonly [string, ChannelKeys])[] = [
    ["another mom", { ...keys, host: "n2" }],
    ["another start of the server", { ...keys, boot: "boot2" }],
    ["another key", { ...keys, key: randomBytes(32) }],
  ];
  for (const [what, claim] of claims) assert.equal(arrives(mom(claim).seal("report")), "foreign", what);
  const bytes = mom(keys).seal("report");
  for (let at = 2; at < bytes.length; at++) {
    const forged = Uint8Array.from(bytes);
    forged[at] = (forged[at] ?? 0) ^ 1;
    const expected = at <= 10 ? "unknown" : "foreign";
    // Byte 10 makes the counter larger than any that is used.
    assert.equal(arrives(forged), expected, `byte ${at}`);
  }
  assert.equal(arrives(bytes), "report", "nothing of this has used up the report");
});

test("what cannot be a report is dropped before anything is decrypted", () => {
  const { desk, mom, arrives, opens } = bed();
  const channel = mom(desk.admit(LINK, "n1", 0));
  const longest = channel.seal("x".repeat(TEXT_BYTES_MAX));
  assert.equal(longest.length, DATAGRAM_BYTES_MAX);
  assert.throws(() => channel.seal("x".repeat(TEXT_BYTES_MAX + 1)), RangeError);
  const cases: readonly (readonly [string, Uint8Array])[] = [
    ["oversized", new Uint8Array(DATAGRAM_BYTES_MAX + 1)],
    ["oversized", new Uint8Array(65_507)],
    ["unknown", new Uint8Array(0)],
    ["unknown", longest.subarray(0, 18 + TAG_BYTES - 1)],
    ["unknown", randomBytes(200)],
    ["unknown", mom({ ...desk.admit(LINK + 1, "n2", 0), channel: "0".repeat(16) }).seal("report")],
  ];
  for (const [why, bytes] of cases) assert.equal(arrives(bytes), why, `${bytes.length} bytes`);
  assert.equal(opens(), 0);
  assert.ok(arrives(longest).startsWith("x"));
  assert.equal(arrives(longest), "replayed");
  assert.equal(opens(), 1, "a replayed one is not decrypted either");
});

test("a flood in the name of a channel costs no more than its allowance, which comes back", () => {
  const { desk, mom, arrives, opens } = bed();
  const keys = desk.admit(LINK, "n1", 0);
  const forger = mom({ ...keys, key: randomBytes(32) });
  for (let count = 0; count < 5000; count++) desk.open(forger.seal("x"), 0);
  assert.ok(opens() <= 400, `${opens()} of 5000 were decrypted`);
  assert.equal(desk.dropped.flood + desk.dropped.foreign, 5000);
  const channel = mom(keys);
  assert.equal(arrives(channel.seal("lost"), 0), "flood");
  assert.equal(arrives(channel.seal("report"), 1000), "report");
});

test("a key lasts for its time; the former one counts until the new one is used, but not for long", () => {
  const { desk, mom, arrives } = bed();
  const first = mom(desk.admit(LINK, "n1", 0));
  assert.equal(desk.open(first.seal("a"), ROTATION_MS - 1)?.is_due, false);
  assert.equal(desk.open(first.seal("b"), ROTATION_MS)?.is_due, true);
  const second = mom(desk.admit(LINK, "n1", ROTATION_MS));
  assert.equal(desk.open(first.seal("c"), ROTATION_MS)?.is_due, false, "the new key is on its way");
  const late = first.seal("d");
  assert.equal(arrives(second.seal("e"), ROTATION_MS), "e");
  assert.equal(arrives(late, ROTATION_MS), "unknown", "the former key is gone");
  mom(desk.admit(LINK, "n1", 2 * ROTATION_MS));
  assert.equal(arrives(second.seal("f"), 2 * ROTATION_MS + 299_000), "f", "the mom has not got its key yet");
  assert.equal(arrives(second.seal("g"), 2 * ROTATION_MS + 301_000), "late");
});

test("a channel ends with its link", () => {
  const { desk, mom, arrives } = bed();
  const keys = [desk.admit(LINK, "n1", 0), desk.admit(LINK, "n1", 1), desk.admit(LINK + 1, "n2", 1)];
  desk.dismiss(LINK);
  const words = keys.map((each) => arrives(mom(each).seal("report"), 2));
  assert.deepEqual(words, ["unknown", "unknown", "report"]);
});

test("a link has at most two channels, however often its mom gets a key", () => {
  const { desk, mom } = bed();
  const channels = [0, 1, 2, 3].map((at_ms) => mom(desk.admit(LINK, "n1", at_ms)));
  const opened = channels.map((channel) => desk.open(channel.seal("report"), 4) !== null);
  assert.deepEqual(opened, [false, false, true, true]);
});
