// What a mom makes of the leaders that welcomes name, in a complex with two servers.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { ServerEnd, ServerLink } from "#mom/driver/ports.ts";
import { heedingLeader } from "#mom/shell/known-leader.ts";
import { connectPair } from "#mom/shell/pair-link.ts";
import { LeaderNote, noteLeader, readLeader } from "#protocol/failover/leader-file.ts";
import { until } from "../../protocol/wire/links-bed.ts";
import { freePort } from "../../protocol/wire/tls-bed.ts";

const root = mkdtempSync(join(tmpdir(), "partita-leaders-"));
after(() => rmSync(root, { recursive: true }));
const directory = (): string => mkdtempSync(join(root, "mom-"));

function recorder(): { readonly end: ServerEnd; readonly heard: string[] } {
  const heard: string[] = [];
  const end: ServerEnd = {
    opened: () => void heard.push("opened"),
    frame: (type) => void heard.push(type),
    closed: () => void heard.push("closed"),
    absent: () => void heard.push("absent"),
  };
  return { end, heard };
}

test("that nobody listens at the address of one server proves nothing once a leader is known, also after a new start of the mom", () => {
  const at = directory();
  const { end, heard } = recorder();
  const faults: string[] = [];
  const fault = (text: string): void => void faults.push(text);
  const first = heedingLeader(at, end, fault);
  first.absent();
  first.frame("mom-welcome", {});
  first.absent();
  assert.deepEqual(heard.splice(0), ["absent", "mom-welcome", "absent"], "a complex with one server");
  first.frame("mom-welcome", { leader: "7/3" });
  first.absent();
  heedingLeader(at, end, fault).absent();
  assert.deepEqual(heard.splice(0), ["mom-welcome"], "the other server may lead");
  assert.match(faults.join(), /^the complex has two servers: add PBS_PRIMARY and PBS_SECONDARY to pbs\.conf/);
  const third = heedingLeader(at, end, fault);
  third.frame("mom-welcome", {});
  third.absent();
  assert.deepEqual(heard, ["mom-welcome", "absent"], "the complex has one server again");
  assert.equal(existsSync(join(at, "leader")), false);
});

test("commands that arrive together with the welcome of a server that is not obeyed are dropped", async () => {
  const at = directory();
  noteLeader(at, { store: 7, term: 3 });
  const { end, heard } = recorder();
  const port = await freePort();
  let reconnects = 0;
  const there = await new Promise<ServerEnd>((resolve) => {
    const link: ServerLink = { connected: true, send: () => undefined, reconnect: () => void reconnects++, close: () => undefined };
    const pair = connectPair(
      {
        servers: [
          { host: "127.0.0.1", port },
          { host: "127.0.0.1", port },
        ],
        directory: at,
        dial(_place, to) {
          resolve(to);
          return link;
        },
        ask: () => Promise.reject(new Error("nobody")),
        moved: () => undefined,
        fault: () => undefined,
      },
      end,
    );
    after(() => pair.close());
  });
  await new Promise((resolve) => setImmediate(resolve));
  there.opened();
  there.frame("mom-keys", {});
  there.frame("mom-welcome", { leader: "8/9" });
  there.frame("mom-start", { jobs: [] });
  assert.deepEqual([heard.splice(0), reconnects], [["opened", "mom-keys"], 1], "a server of another store");
  there.closed("");
  there.opened();
  there.frame("mom-welcome", { leader: "7/3" });
  there.frame("mom-start", { jobs: [] });
  assert.deepEqual(heard, ["closed", "opened", "mom-welcome", "mom-start"]);
});

test("a leader that cannot be written is written as soon as that is possible", async () => {
  const at = directory();
  // A directory in the place of the file: no user can write the file.
  mkdirSync(join(at, "leader", "x"), { recursive: true });
  const faults: string[] = [];
  const note = new LeaderNote(at, (text) => void faults.push(text));
  after(() => note.close());
  note.keep({ store: 7, term: 3 });
  note.keep({ store: 7, term: 4 });
  assert.equal(faults.length, 1, faults.join());
  assert.match(faults[0] ?? "", /^the leader cannot be noted: /);
  rmSync(join(at, "leader"), { recursive: true });
  await until("the file is written", () => readLeader(at) !== null);
  assert.deepEqual(readLeader(at), { store: 7, term: 4 });
  assert.equal(faults.at(-1), "the leader is noted");
});
