// Moms of different hosts over TLS on the loopback interface: real sockets and certificates, the real core of each mom, and processes that the test plays.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from "node:tls";
import { type Credentials, writeCredentials } from "#identity/files/credentials.ts";
import { keepRevoked, revokedSerials } from "#identity/files/revoked.ts";
import { readCertificate } from "#identity/x509/certificate.ts";
import { OtherMoms } from "#mom/shell/other-moms.ts";
import { ownCredentials, TaskPort } from "#mom/shell/task-port.ts";
import { TaskServer } from "#mom/shell/task-server.ts";
import type { MomPlace } from "#protocol/mom-link.ts";
import { frameTypes } from "#protocol/schema-link.ts";
import { encodeFrame, frameDecoder } from "#protocol/wire/frame.ts";
import { until } from "../../protocol/wire/links-bed.ts";
import { authority, freePort, member } from "../../protocol/wire/tls-bed.ts";
import { job, run, type World, world } from "../world.ts";

const CA = authority();
const RUN = { job: "1.n1", run_count: 1 } as const;

type Mom = {
  readonly w: World;
  readonly home: string;
  readonly port: number;
  readonly notes: string[];
  readonly others: OtherMoms;
  /** argv of the tasks that were started here */
  readonly started: string[];
  readonly listener: TaskPort;
  readonly socket: string;
  /** the process of a task, as the starter reports it */
  starts(task: number): void;
  exits(task: number, code: number): void;
};
type Bed = { readonly dir: string; mom(name: string, credentials: Credentials | null, options?: { server?: string }): Promise<Mom> };

async function inBed(work: (bed: Bed) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "moms-"));
  const closing: (() => void)[] = [];
  const mom: Bed["mom"] = async (name, credentials) => {
    const home = join(dir, `${name}-${closing.length}`);
    mkdirSync(home);
    if (credentials !== null) writeCredentials(home, credentials);
    const port = await freePort();
    const notes: string[] = [];
    const started: string[] = [];
    const w = world({ config: { host: name } });
    const complain = (text: string): void => void notes.push(text);
    const others = new OtherMoms({
      credentials: () => ownCredentials(home),
      revoked: () => revokedSerials(home),
      server_host: "127.0.0.1",
      server: "head",
    });
    const happen = (event: Parameters<World["on"]>[0]): void => {
      const from = w.actions.length;
      w.on(event);
      for (const action of w.actions.slice(from)) {
        if (action.kind === "task-say") server.say(action.asked, action.answer);
        else if (action.kind === "task-forward") server.forward(action);
        else if (action.kind === "start" && action.spec.job.includes("#")) started.push(action.spec.argv.join(" "));
      }
    };
    const patience = { start_ms: 0, lost_ms: 60_000 };
    const server: TaskServer = new TaskServer({ home, mode: "user", happen, complain, others, patience });
    const listener = new TaskPort({
      ...server.handlers,
      home,
      port,
      server: "head",
      types: frameTypes("task-to-mom"),
      complain,
      reviewed: () => others.review(),
    });
    closing.push(() => {
      server.close();
      listener.close();
      others.close();
    });
    const key = (task: number) => ({ job: `1.n1#${task}`, run_count: 1 });
    return {
      w,
      home,
      port,
      notes,
      others,
      started,
      listener,
      socket: server.path,
      starts: (task) => happen({ kind: "started", run: { ...key(task), pid: 90 + task, at_ms: w.now_ms } }),
      exits: (task, code) => happen({ kind: "exited", run: { ...key(task), status: { code }, cput_s: 0, at_ms: w.now_ms } }),
    };
  };
  try {
    await work({ dir, mom });
  } finally {
    for (const close of closing) close();
    rmSync(dir, { recursive: true });
  }
}

const at = (port: number): MomPlace => ({ address: "127.0.0.1", port });

/** The job on n1 and n2 runs on both moms. port: where n1 looks for n2. secret: the one that n2 knows. */
function begin(n1: Mom, n2: Mom, port = n2.port, secret = "shared"): void {
  const hosts = { exec_host: "n1/0+n2/0", exec_vnode: "(n1:ncpus=1)+(n2:ncpus=1)" };
  run(n1.w, job({ ...hosts, sisters: { secret: "shared", hosts: { n2: at(port) } } }));
  run(n2.w, job({ ...hosts, sisters: { secret, hosts: { n1: at(n1.port) } } }));
}

/** A client on the mom's host, which runs within the job. */
function client({ socket }: Mom) {
  const heard: string[] = [];
  const link = connect(socket);
  const decoder = frameDecoder(1_000_000);
  link.setEncoding("utf8");
  link.on("error", (error) => heard.push(error.message));
  link.on("data", (chunk: unknown) =>
    decoder.push(String(chunk), ({ type, data }) => {
      const { token, task, status, text } = data as Readonly<Record<string, string | number>>;
      heard.push([token, type, task ?? status ?? text].join(" "));
    }),
  );
  return {
    heard,
    spawn: (token: number, host: string, ...argv: readonly string[]): void =>
      void link.write(encodeFrame("task-spawn", { ...RUN, run_count: null, cookie: "secret", token, host, argv, env: [], shell: false })),
    signal: (token: number, signal: number): void => void link.write(encodeFrame("task-signal", { token, signal })),
    close: () => link.destroy(),
  };
}

/** A cable between two moms. mute: what comes back is lost. */
async function cable(to: number) {
  const sockets = new Set<Socket>();
  const state = { open: true, mute: false };
  const server = createServer((near) => {
    if (!state.open) return void near.destroy();
    const far = connect(to, "127.0.0.1");
    near.on("data", (bytes) => void far.write(bytes));
    far.on("data", (bytes) => void (state.mute || near.write(bytes)));
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on("error", () => undefined);
      one.on("close", () => other.destroy());
    }
  });
  const port = await freePort();
  await new Promise<void>((done) => server.listen(port, "127.0.0.1", done));
  const drop = (): void => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  return {
    port,
    state,
    cut() {
      state.open = false;
      drop();
    },
    close() {
      drop();
      server.close();
    },
  };
}

test("a task on another host: started, signalled, and its end, over one connection for many tasks", async () => {
  await inBed(async ({ mom }) => {
    const [n1, n2] = [await mom("n1", member(CA, "n1")), await mom("n2", member(CA, "n2"))];
    begin(n1, n2);
    const me = client(n1);
    me.spawn(1, "n2", "one");
    me.spawn(2, "n2", "two");
    await until("both have arrived", () => n2.started.length === 2);
    assert.deepEqual([n1.started, n2.started], [[], ["one", "two"]]);
    n2.starts(2);
    n2.starts(3);
    await until("both are started", () => me.heard.length === 2);
    me.signal(2, 15);
    await until("the signal", () => n2.w.actions.some((each) => each.kind === "signal" && each.run.job === "1.n1#3" && each.signal === 15));
    n2.exits(3, 5);
    await until("an end", () => me.heard.length === 3);
    n2.exits(2, 0);
    await until("the other end", () => me.heard.length === 4);
    assert.deepEqual(me.heard, ["1 task-started 2", "2 task-started 3", "2 task-exited 5", "1 task-exited 0"]);
    assert.deepEqual([n1.notes, n2.notes], [[], []]);
    me.close();
  });
});

test("the link is cut in the middle of a task: the task goes on, and its end is known when the link is back", async () => {
  await inBed(async ({ mom }) => {
    const [n1, n2] = [await mom("n1", member(CA, "n1")), await mom("n2", member(CA, "n2"))];
    const line = await cable(n2.port);
    begin(n1, n2, line.port);
    const me = client(n1);
    me.spawn(1, "n2", "one");
    await until("it has arrived", () => n2.started.length === 1);
    n2.starts(2);
    await until("it is started", () => me.heard.length === 1);
    line.cut();
    me.signal(1, 10);
    n2.exits(2, 7);
    line.state.open = true;
    await until("its end", () => me.heard.length === 2);
    assert.deepEqual(me.heard, ["1 task-started 2", "1 task-exited 7"]);
    assert.deepEqual(n2.started, ["one"]);

    // The answer to a request is lost with the link: the task is not started twice.
    line.state.mute = true;
    me.spawn(2, "n2", "two");
    await until("the second has arrived", () => n2.started.length === 2);
    n2.starts(3);
    line.cut();
    line.state.mute = false;
    me.signal(2, 12);
    line.state.open = true;
    await until("the second is started", () => me.heard.length === 3);
    await until("its signal", () => n2.w.actions.some((each) => each.kind === "signal" && each.run.job === "1.n1#3" && each.signal === 12));
    n2.exits(3, 0);
    await until("the end of the second", () => me.heard.length === 4);
    assert.deepEqual(me.heard.slice(2), ["2 task-started 3", "2 task-exited 0"]);
    assert.deepEqual(n2.started, ["one", "two"]);

    // A host that does not come back.
    line.cut();
    me.spawn(3, "n2", "three");
    await until("the third is refused", () => me.heard.length === 5);
    assert.match(me.heard[4] ?? "", /^3 task-refused the mom of n2: /);
    me.close();
    line.close();
  });
});

test("between moms, only hosts of the complex and of the run are served, and only the right mom is asked", async () => {
  await inBed(async ({ mom }) => {
    const [n1, n2] = [await mom("n1", member(CA, "n1")), await mom("n2", member(CA, "n2"))];
    begin(n1, n2);
    const foreign = authority("Another CA");
    const shared = { ...RUN, cookie: "shared", host: "n2", argv: ["true"], env: [], shell: false, name: "x" };
    const ask = (by: Mom, data: object): Promise<string> =>
      new Promise((resolve) => {
        by.others.ask(
          { kind: "host", host: "n2", ...at(n2.port) },
          { job: RUN.job, frame: (token) => ({ type: "task-spawn", data: { ...shared, ...data, token } }) },
          {
            answered: ({ type, data: answer }) => resolve(`${type} ${"text" in answer ? answer.text : ""}`),
            lost: (why) => resolve(`lost: ${why}`),
          },
        );
      });
    const unknown = "task-refused job 1.n1 does not run on n2";
    const n4 = await mom("n4", member(CA, "n4"));
    const impostor = await mom("svr", member(CA, "svr", "server"));
    // biome-ignore format: a table
    const rows: readonly (readonly [what: string, by: Mom, data: object, answer: RegExp, note: RegExp | null])[] = [
      ["a host that has no part in the run",     n4,       {},                              new RegExp(unknown), null],
      ["it says that it is n1",                  n4,       { host: "n1" },                  /task-refused/,      null],
      ["wrong secret",                           n1,       { cookie: "guess" },             new RegExp(unknown), null],
      ["no secret, as on one host",              n1,       { cookie: null },                new RegExp(unknown), null],
      ["the server of another complex",          impostor, {},                              /^lost: Invalid|^lost: the peer is the server svr/, /the peer is the server svr, not head, from 127/],
    ];
    for (const [what, by, data, answer, note] of rows) {
      const before = n2.notes.length;
      assert.match(await ask(by, data), answer, what);
      if (note !== null) await until(what, () => n2.notes.length > before && note.test(n2.notes.at(-1) ?? ""));
    }
    const { key, certificate: cert } = member(foreign, "n1");
    const outsiders = [
      [{}, "a peer without certificate"],
      [{ key, cert }, "the certificate is not one of this complex"],
    ] as const;
    for (const [options, problem] of outsiders) {
      const ports = { host: "127.0.0.1", port: n2.port, ALPNProtocols: ["partita-mom/1"] };
      const bare = connectTls({ ...ports, rejectUnauthorized: false, ...options });
      bare.on("error", () => undefined);
      bare.on("secureConnect", () => bare.write(encodeFrame("task-spawn", { ...shared, token: 1 })));
      await until(problem, () => n2.notes.some((text) => text.includes(problem)));
    }
    assert.deepEqual(n2.started, []);

    // n1 asks for a task on n2, and n4 listens in the place of n2.
    const n1b = await mom("n1", member(CA, "n1"));
    run(
      n1b.w,
      job({ exec_host: "n1/0+n2/0", exec_vnode: "(n1:ncpus=1)+(n2:ncpus=1)", sisters: { secret: "s", hosts: { n2: at(n4.port) } } }),
    );
    const me = client(n1b);
    me.spawn(1, "n2", "secret words");
    await until("it is refused", () => me.heard.length === 1);
    assert.equal(me.heard[0], "1 task-refused the mom of n2: the peer is the host n4, not n2");
    me.close();
  });
});

test("a host whose certificate was revoked is neither served nor asked", async () => {
  await inBed(async ({ mom }) => {
    const [n1, n2] = [await mom("n1", member(CA, "n1")), await mom("n2", member(CA, "n2"))];
    begin(n1, n2);
    const revoke = (at_home: string, of: Mom): void => {
      const { serial, until_s } = readCertificate(ownCredentials(of.home).certificate);
      keepRevoked(at_home, [{ serial, until_s }], Math.floor(Date.now() / 1000));
    };
    revoke(n2.home, n1);
    const me = client(n1);
    me.spawn(1, "n2", "one");
    await until("n2 refuses", () => me.heard.length === 1);
    assert.match(me.heard[0] ?? "", /^1 task-refused the mom of n2: the certificate \w+ of n1 was revoked$/);
    revoke(n1.home, n2);
    me.spawn(2, "n2", "two");
    await until("n1 refuses", () => me.heard.length === 2);
    assert.match(me.heard[1] ?? "", /^2 task-refused the mom of n2: the certificate \w+ of n2 was revoked$/);
    assert.deepEqual(n2.started, []);
    me.close();
  });
});

test("the port opens when the host has an identity, and shows a renewed one", async () => {
  await inBed(async ({ mom }) => {
    const n2 = await mom("n2", null);
    const n1 = await mom("n1", member(CA, "n1"));
    begin(n1, n2);
    const me = client(n1);
    me.spawn(1, "n2", "one");
    await until("nobody listens", () => me.heard.length === 1);
    assert.match(me.heard[0] ?? "", /^1 task-refused the mom of n2: connect ECONNREFUSED/);
    const serialOf = (): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = connectTls({ host: "127.0.0.1", port: n2.port, ALPNProtocols: ["partita-mom/1"], rejectUnauthorized: false });
        socket.on("error", reject);
        socket.on("secureConnect", () => {
          resolve(socket.getPeerX509Certificate()?.serialNumber ?? "");
          socket.destroy();
        });
      });
    writeCredentials(n2.home, member(CA, "n2"));
    n2.listener.look();
    me.spawn(2, "n2", "two");
    await until("it has arrived", () => n2.started.length === 1);
    const before = await serialOf();
    writeCredentials(n2.home, member(CA, "n2"));
    n2.listener.look();
    while ((await serialOf()) === before);
    me.close();
  });
});

/** Asks the mom at the port for a task, as the mom of n1. */
function askOver(n1: Mom, port: number, job_id: string = RUN.job, text = "true") {
  const data = { ...RUN, job: job_id, cookie: "shared", host: "n2", argv: [text], env: [], shell: false };
  const state = { made: 0, lost: "", is_sent: true, answer: "" };
  n1.others.ask(
    { kind: "host", host: "n2", ...at(port) },
    {
      job: job_id,
      frame: (token) => {
        state.made = token;
        return { type: "task-spawn", data: { ...data, token } };
      },
    },
    {
      answered: ({ type }) => {
        state.answer = type;
      },
      lost: (why, is_sent) => Object.assign(state, { lost: why, is_sent }),
    },
  );
  return state;
}

test("an open link ends when a certificate is revoked, on either side; a refused link has carried nothing", async () => {
  await inBed(async ({ mom }) => {
    const [n1, n2] = [await mom("n1", member(CA, "n1")), await mom("n2", member(CA, "n2"))];
    begin(n1, n2);
    const revoke = (at_home: string, of: Mom): void => {
      const { serial, until_s } = readCertificate(ownCredentials(of.home).certificate);
      keepRevoked(at_home, [{ serial, until_s }], Math.floor(Date.now() / 1000));
    };
    const first = askOver(n1, n2.port);
    await until("it has arrived", () => n2.started.length === 1);
    revoke(n2.home, n1);
    n2.listener.look();
    await until("n2 ends the link", () => first.lost !== "");
    assert.deepEqual([first.lost, first.is_sent], ["the connection was lost", true]);
    assert.match(n2.notes.join(), /the certificate \w+ of n1 was revoked/);
    const again = askOver(n1, n2.port);
    await until("n2 refuses", () => again.lost !== "");
    assert.match(again.lost, /was revoked/);
    assert.equal(again.is_sent, false);

    const n3 = await mom("n2", member(CA, "n2"));
    run(
      n3.w,
      job({ exec_host: "n1/0+n2/0", exec_vnode: "(n1:ncpus=1)+(n2:ncpus=1)", sisters: { secret: "shared", hosts: { n1: at(n1.port) } } }),
    );
    const other = askOver(n1, n3.port);
    await until("it has arrived at the other one", () => n3.started.length === 1);
    revoke(n1.home, n3);
    n1.listener.look();
    assert.match(other.lost, /the certificate \w+ of n2 was revoked/);
    assert.equal(other.is_sent, true);
  });
});

test("an open link ends when a certificate expires, on either side", async (t) => {
  await inBed(async ({ mom }) => {
    const [n1, n2] = [await mom("n1", member(CA, "n1")), await mom("n2", member(CA, "n2"))];
    begin(n1, n2);
    const asked = askOver(n1, n2.port);
    await until("it has arrived", () => n2.started.length === 1);
    const later_ms = Date.now() + 1_000_000;
    t.mock.method(Date, "now", () => later_ms);
    n2.listener.look(performance.now() + 31_000);
    await until("n2 ends the link", () => asked.lost !== "");
    assert.match(n2.notes.join(), /the certificate \w+ of n1 has expired/);
    t.mock.restoreAll();

    const again = askOver(n1, n2.port, "1.n1", "again");
    await until("it has arrived again", () => n2.started.length === 2);
    t.mock.method(Date, "now", () => later_ms);
    n1.listener.look(performance.now() + 31_000);
    assert.equal(again.lost, "the certificate of n2 has expired");
  });
});

test("a mom that reads nothing: few frames are made for it, and jobs take turns when it reads again", async () => {
  await inBed(async ({ mom }) => {
    const n1 = await mom("n1", member(CA, "n1"));
    const { key, certificate, authority: ca } = member(CA, "n2");
    const tokens: number[] = [];
    const peers: TLSSocket[] = [];
    const decoder = frameDecoder(16_000_000);
    const server = createTlsServer({ key, cert: certificate, ca, requestCert: true, ALPNProtocols: ["partita-mom/1"] }, (peer) => {
      peers.push(peer);
      peer.pause();
      peer.setEncoding("utf8");
      peer.on("error", () => undefined);
      peer.on("data", (chunk: string) => decoder.push(chunk, ({ data }) => tokens.push((data as { readonly token: number }).token)));
    });
    const port = await freePort();
    await new Promise<void>((done) => server.listen(port, "127.0.0.1", done));
    const large = Array.from({ length: 40 }, () => askOver(n1, port, "1.n1", "x".repeat(1_000_000)));
    const small = askOver(n1, port, "2.n1");
    await until("it is connected", () => peers.length === 1);
    await until("the first frames are made", () => large.some(({ made }) => made > 0));
    // The kernel takes some of it, too.
    const made = (): number => large.filter((each) => each.made > 0).length;
    assert.ok(made() < 20, `${made()} frames of a million characters wait`);
    peers[0]?.resume();
    await until("all have come", () => tokens.length === 41);
    assert.ok(tokens.indexOf(small.made) < 4, `the other job was served as number ${tokens.indexOf(small.made)}`);
    assert.equal(made(), 40);
    n1.others.close();
    server.close();
  });
});
