// A scheduler on another host than its server: it listens, and the server dials it (docs/schedulers.md).

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { writeCredentials } from "#identity/files/credentials.ts";
import { readCertificate } from "#identity/x509/certificate.ts";
import { REVOKED } from "#protocol/join-link.ts";
import type { ServerLink } from "#protocol/wire/ipc-transport.ts";
import { callScheduler } from "#protocol/wire/sched-call.ts";
import type { LinkPort } from "#sched/driver/ports.ts";
import { isDialled, openServerWay, type WayOptions } from "#sched/shell/server-way.ts";
import { makeConf, thisMachine } from "#support/conf.ts";
import { until } from "../../protocol/wire/links-bed.ts";
import { authority, freePort, member } from "../../protocol/wire/tls-bed.ts";

const CA = authority();
const HEAD = member(CA, "head", "server");

const confIn = (home: string, more = "") =>
  makeConf(
    join(home, "pbs.conf"),
    `PBS_EXEC=/opt/pbs\nPBS_HOME=${home}\nPBS_SERVER=head\nPBS_START_SERVER=0\nPBS_START_MOM=1\n${more}`,
    {},
    thisMachine(),
  );

type Side = { readonly events: string[]; port: LinkPort };

async function inHome(
  work: (home: string, port: number, side: Side, notes: string[]) => Promise<void>,
  { known, waits }: { readonly known?: string; readonly waits?: WayOptions["waits"] } = {},
): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "partita-way-"));
  try {
    writeCredentials(home, member(CA, "node7"));
    const port = await freePort();
    const notes: string[] = [];
    if (known !== undefined) writeFileSync(join(home, "leader"), `${known}\n`);
    const note = (_event: number, text: string): void => void notes.push(text);
    const way = await openServerWay({ conf: confIn(home), port, leader_in: home, note, ...(waits === undefined ? {} : { waits }) });
    const events: string[] = [];
    const link = way({
      opened() {
        events.push("opened");
        link.send("sched-hello", { name: "s1", pid: 1, version: "1", pongs: true });
      },
      frame: (type) => void events.push(type),
      lost: (why) => void events.push(`lost: ${why}`),
      unreachable: (why) => void events.push(why),
    });
    try {
      await work(home, port, { events, port: link }, notes);
    } finally {
      link.close();
    }
  } finally {
    rmSync(home, { recursive: true });
  }
}

type Called = { link: ServerLink | null; why: string | null; ended: boolean; end(): void };

function call(port: number, credentials = HEAD, leader?: string): Called {
  const called: Called = { link: null, why: null, ended: false, end: () => undefined };
  called.end = callScheduler(
    {
      sched: "s1",
      host: "node7",
      address: "127.0.0.1",
      port,
      credentials,
      types: ["sched-hello", "sched-pong"],
      fault: () => null,
      ...(leader === undefined ? {} : { first: { type: REVOKED, data: { certificates: [], leader } } }),
    },
    {
      onLink(link) {
        called.link = link;
      },
      onFrame: () => undefined,
      onEnd(_link, why) {
        called.why = why?.message ?? null;
        called.ended = true;
      },
    },
  );
  return called;
}

test("server way: a host that has joined listens, every other one dials the server's socket", () => {
  const home = mkdtempSync(join(tmpdir(), "partita-way-"));
  try {
    assert.equal(isDialled(confIn(home)), false, "it has no certificate");
    writeCredentials(home, member(CA, "node7"));
    assert.equal(isDialled(confIn(home)), true);
    assert.equal(isDialled(confIn(home, "PBS_START_SERVER=1\n")), false, "it is the server's host");
  } finally {
    rmSync(home, { recursive: true });
  }
});

test("server way: the server's link counts, and a newer one replaces it (L1, L2)", async () => {
  await inHome(async (_home, port, side, notes) => {
    assert.equal(notes[0], `listening on TCP port ${port} for the server head`);
    const first = call(port);
    await until("the first link", () => first.link !== null);
    first.link?.send("sched-ping", { number: 1 });
    await until("a frame", () => side.events.includes("sched-ping"));
    const second = call(port);
    await until("the second link", () => second.link !== null && first.ended);
    assert.deepEqual(side.events, ["opened", "sched-ping", "lost: the server has connected again", "opened"]);
    second.end();
    await until("the end", () => side.events.at(-1) === "lost: the connection has ended");
    const thief = call(port, member(CA, "head"));
    await until("the refusal", () => thief.ended);
    assert.match(thief.why ?? "", /it refuses this server: the peer is the host head and no server/);
    assert.equal(side.events.at(-1), "lost: the connection has ended", "the driver learns nothing of it");
  });
});

test("server way: a certificate of the server that was revoked ends its link and gets no other (L1)", async () => {
  await inHome(async (home, port, side) => {
    const first = call(port);
    await until("the link", () => first.link !== null);
    const { serial, until_s } = readCertificate(HEAD.certificate);
    first.link?.send(REVOKED, { certificates: [{ serial, until_s }] });
    await until("the end", () => first.ended);
    assert.equal(side.events.at(-1), "lost: the connection has ended");
    const second = call(port);
    await until("the refusal", () => second.ended);
    assert.match(second.why ?? "", /it refuses this server: the certificate \w+ of the server head was revoked/);
    const third = call(port, member(CA, "head", "server"));
    await until("a link to the server's new certificate", () => third.link !== null);
    third.end();
    writeFileSync(join(home, "identity/revoked.json"), "{}");
    const fourth = call(port, member(CA, "head", "server"));
    await until("the refusal of everybody", () => fourth.ended);
    assert.match(fourth.why ?? "", /revoked\.json cannot be used/);
  });
});

test("server way: the scheduler ends a link that it does not understand, and the server may dial again", async () => {
  await inHome(async (_home, port, side) => {
    const first = call(port);
    await until("the link", () => first.link !== null);
    side.port.reconnect("broken");
    await until("the end", () => first.ended && side.events.at(-1) === "lost: the connection has ended");
    const second = call(port);
    await until("the second link", () => second.link !== null);
    second.end();
    await until("the end", () => second.ended);
  });
});

test("server way: a port of its own that is in use is named", async () => {
  await inHome(async (home, port) => {
    await assert.rejects(openServerWay({ conf: confIn(home), port, leader_in: home, note: () => undefined }), {
      message: `port ${port} is in use`,
    });
  });
});

const refusedFor = (called: Called): string => (called.why ?? "").replace("it refuses this server: ", "");

test("server way: of two servers the one that was replaced gets no link, and the newer one replaces it (L2)", async () => {
  await inHome(async (home, port, side, notes) => {
    const old = call(port, HEAD, "7/3");
    await until("the leader is noted", () => existsSync(join(home, "leader")));
    assert.equal(readFileSync(join(home, "leader"), "utf8"), "7/3\n");
    const next = call(port, HEAD, "7/4");
    await until("the newer leader", () => next.link !== null && old.ended);
    assert.equal(readFileSync(join(home, "leader"), "utf8"), "7/4\n");
    const events = ["opened", "lost: the server has connected again", "opened"];
    assert.deepEqual(side.events, events);
    for (const [leader, why] of [
      ["7/3", "the server was replaced: it names the leader 7/3, and the newest leader is 7/4"],
      ["8/9", "the server has another database than the one known: it names the leader 8/9, and the newest leader is 7/4"],
    ] as const) {
      const late = call(port, HEAD, leader);
      await until("the refusal", () => late.ended);
      assert.equal(refusedFor(late), why);
      assert.equal(notes.at(-1), `connection refused: ${why}`);
    }
    assert.equal(next.ended, false, "the present link stays");
    next.link?.send("sched-ping", { number: 1 });
    await until("a frame of the present link", () => side.events.includes("sched-ping"));
    const again = call(port, HEAD, "7/4");
    await until("the same server again", () => again.link !== null && next.ended);
    assert.deepEqual(side.events, [...events, "sched-ping", "lost: the server has connected again", "opened"]);
  });
});

test("server way: a scheduler that was started again knows the newest leader, and says once why it refuses another one", async () => {
  await inHome(
    async (home, port, side, notes) => {
      for (const _ of [1, 2]) {
        const old = call(port, HEAD, "7/3");
        await until("the refusal", () => old.ended);
        assert.match(old.why ?? "", /it refuses this server: the server was replaced/);
      }
      assert.equal(notes.filter((text) => text.startsWith("connection refused: ")).length, 1);
      assert.deepEqual(side.events, []);
      const next = call(port, HEAD, "7/5");
      await until("the newer leader", () => next.link !== null);
      assert.equal(readFileSync(join(home, "leader"), "utf8"), "7/5\n");
    },
    { known: "7/4" },
  );
});

test("server way: a server that names no leader is obeyed only when the leaders of the known store have been absent", async () => {
  const waits = { first_ms: 1, absent_ms: 3_600_000 };
  await inHome(
    async (_home, port, side) => {
      const silent = call(port);
      await until("the refusal", () => silent.ended);
      assert.equal(
        refusedFor(silent),
        "the server has another database than the one known: it names no leader, and the newest leader is 7/4",
      );
      assert.deepEqual(side.events, []);
    },
    { known: "7/4", waits },
  );
  await inHome(
    async (home, port, side) => {
      const silent = call(port);
      await until("the link", () => silent.link !== null);
      assert.equal(existsSync(join(home, "leader")), false, "the complex has one server again");
      const other = call(port);
      await until("the next link", () => other.link !== null && silent.ended);
      assert.deepEqual(side.events, ["opened", "lost: the server has connected again", "opened"]);
    },
    { known: "7/4", waits: { first_ms: 1, absent_ms: 0 } },
  );
});
