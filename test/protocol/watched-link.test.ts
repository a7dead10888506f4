// A slow server and a server that does not answer: the command's messages, which requests are given up, and when.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type ServerConnection, ServerUnreachable } from "#protocol/client.ts";
import type { Request } from "#protocol/messages.ts";
import { type Patience, patienceOf, watchedLink } from "#protocol/watched-link.ts";
import type { Reply } from "#protocol/wire/reply.ts";

type World = {
  readonly link: ServerConnection;
  /** lets seconds pass, one by one */
  pass(seconds: number): Promise<void>;
  /** number of notices that the server does not answer */
  told: number;
  /** open probes, and the number of all probes */
  readonly probes: (() => void)[];
  asked: number;
  /** answers the open requests */
  answer(): void;
  part(): void;
};

/** A server that sends only what the test asks for. is_alive: it answers probes. */
function world(t: TestContext, patience: Patience, is_alive: boolean, hosts: { own?: string; leads?: string } = {}): World {
  let now_ms = 0;
  t.mock.timers.enable({ apis: ["setTimeout"] });
  t.mock.method(performance, "now", () => now_ms);
  const open: { resolve(reply: Reply): void; reject(error: Error): void; onPart: ((items: readonly unknown[]) => void) | undefined }[] = [];
  const connection: ServerConnection = {
    server: hosts.own,
    request: (_request, { onPart } = {}) => new Promise((resolve, reject) => open.push({ resolve, reject, onPart })),
    get open_requests() {
      return open.length;
    },
    close: () => {
      for (const { reject } of open.splice(0)) reject(new ServerUnreachable("Communication failure.", 15010));
    },
  };
  const w: World = {
    told: 0,
    asked: 0,
    probes: [],
    link: watchedLink(connection, {
      patience,
      silent: () => void w.told++,
      probe: (ended) => {
        w.asked++;
        if (is_alive) return Promise.resolve(hosts.leads);
        return new Promise((resolve) => {
          const answer = (): void => resolve(undefined);
          w.probes.push(answer);
          ended.addEventListener("abort", () => w.probes.splice(w.probes.indexOf(answer), 1));
        });
      },
    }),
    async pass(seconds) {
      for (let second = 0; second < seconds; second++) {
        now_ms += 1000;
        t.mock.timers.tick(1000);
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    answer: () => {
      for (const { resolve } of open.splice(0)) resolve({ id: 1, ok: true });
    },
    part: () => {
      for (const { onPart } of open) onPart?.([]);
    },
  };
  return w;
}

const STATUS: Request = { kind: "status", object: "server", ids: [] };
const DELETE: Request = { kind: "delete-job", job: "1.svr" };
const WAIT: Request = { kind: "wait-job", job: "1.svr" };
const outcome = (reply: Promise<Reply>): { text: string } => {
  const seen = { text: "open" };
  reply.then(
    () => {
      seen.text = "answered";
    },
    (error: Error) => {
      seen.text = error.message;
    },
  );
  return seen;
};

test("a server that does not answer: it is said once after notice_s, and a question is given up after limit_s", async (t) => {
  const w = world(t, { notice_s: 10, limit_s: 60 }, false);
  const asked = outcome(w.link.request(STATUS));
  await w.pass(9);
  assert.equal(w.told, 0);
  await w.pass(1);
  assert.equal(w.told, 1);
  await w.pass(49);
  assert.deepEqual([w.told, asked.text, w.probes.length], [1, "open", 1]);
  await w.pass(2);
  assert.deepEqual([w.told, asked.text, w.probes.length], [1, "Communication failure.", 0]);
});

test("what changes something is waited for, with one second connection in all", async (t) => {
  const w = world(t, { notice_s: 10, limit_s: 60 }, false);
  const changed = outcome(w.link.request(DELETE));
  const asked = outcome(w.link.request(STATUS));
  await w.pass(3600);
  assert.deepEqual([w.told, changed.text, asked.text, w.asked], [1, "open", "open", 1]);
  w.answer();
  await w.pass(1);
  assert.deepEqual([changed.text, asked.text, w.probes.length], ["answered", "answered", 0]);
});

test("a server that answers something else only takes its time: nothing is said, and it is asked less and less often", async (t) => {
  const w = world(t, { notice_s: 10, limit_s: 60 }, true);
  const waiting = outcome(w.link.request(WAIT));
  const asked = outcome(w.link.request(STATUS));
  await w.pass(36_000);
  assert.deepEqual([w.told, waiting.text, asked.text], [0, "open", "open"]);
  assert.ok(w.asked > 100 && w.asked < 140, `${w.asked}`);
});

test("parts of an answer are words of the server", async (t) => {
  const w = world(t, { notice_s: 10, limit_s: 60 }, false);
  const asked = outcome(w.link.request(STATUS));
  for (let n = 0; n < 100; n++) {
    await w.pass(4);
    w.part();
  }
  assert.deepEqual([w.told, w.asked, asked.text], [0, 0, "open"]);
});

test("a server that goes on: the second connection is answered, and the time begins anew", async (t) => {
  const w = world(t, { notice_s: 10, limit_s: 60 }, false);
  const asked = outcome(w.link.request(STATUS));
  await w.pass(55);
  w.probes[0]?.();
  await w.pass(55);
  assert.deepEqual([w.told, asked.text], [1, "open"]);
  w.answer();
  await w.pass(100);
  assert.deepEqual([w.asked, asked.text], [2, "answered"]);
});

// biome-ignore format: a table
const SETTINGS: readonly [notice: string | undefined, limit: string | undefined, patience: Patience][] = [
  [undefined, undefined, { notice_s: 10, limit_s: 300 }],
  ["3",       "0",       { notice_s: 3,  limit_s: 0 }],
  ["0",       "20",      { notice_s: 0,  limit_s: 20 }],
  ["soon",    "-1",      { notice_s: 10, limit_s: 300 }],
];
for (const [notice, limit, patience] of SETTINGS)
  test(`PARTITA_SERVER_NOTICE=${notice}, PARTITA_SERVER_TIMEOUT=${limit}`, async (t) => {
    const values: Readonly<Record<string, string | undefined>> = { PARTITA_SERVER_NOTICE: notice, PARTITA_SERVER_TIMEOUT: limit };
    assert.deepEqual(
      patienceOf((key) => values[key]),
      patience,
    );
    const w = world(t, patience, false);
    const asked = outcome(w.link.request(STATUS));
    await w.pass(1000);
    assert.equal(w.told, patience.notice_s === 0 ? 0 : 1);
    assert.equal(asked.text, patience.limit_s === 0 ? "open" : "Communication failure.");
  });

test("with both times 0 nothing is watched", async (t) => {
  const w = world(t, { notice_s: 0, limit_s: 0 }, false);
  const asked = outcome(w.link.request(STATUS));
  await w.pass(1000);
  assert.deepEqual([w.asked, asked.text], [0, "open"]);
});

test("a command whose server was replaced by the other one of two ends with an error", async (t) => {
  const w = world(t, { notice_s: 10, limit_s: 60 }, true, { own: "head", leads: "spare" });
  const waiting = assert.rejects(w.link.request({ kind: "status", object: "server", ids: [], attrs: [] }), /Communication failure/);
  await w.pass(60);
  await waiting;
});

test("a command whose server still leads goes on waiting", async (t) => {
  const w = world(t, { notice_s: 10, limit_s: 60 }, true, { own: "head", leads: "head" });
  const waiting = w.link.request({ kind: "status", object: "server", ids: [], attrs: [] });
  await w.pass(60);
  w.answer();
  assert.equal((await waiting).ok, true);
});
