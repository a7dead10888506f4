// qsub -I without a mom: its requests to the server, its messages to the user, and its handling of input. The test plays the
// relay.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { CommandIo } from "#cli/command.ts";
import { qsub } from "#cli/commands/jobs/qsub.ts";
import { escapeReader } from "#cli/qsub/escapes.ts";
import type { Terminal, TerminalSignal } from "#cli/terminal.ts";
import type { QueueJobRequest, Request } from "#protocol/messages.ts";
import { dialTerminal, type TerminalChannel } from "#protocol/terminal/channel.ts";
import type { TerminalFrame, TerminalTicket } from "#protocol/terminal/link.ts";
import { type Answer, fakeComplex } from "./fake-complex.ts";

const CONTROLS = [3, 28, 127, 21, 4, 26];

// biome-ignore format: one row a case
const TYPED: readonly (readonly [pieces: readonly string[], expected: string])[] = [
  [["ls -l\r"],              "ls -l\r"],
  [["~."],                   "TERMINATE"],
  [["~", "."],               "TERMINATE"],
  [["a~."],                  "a~."],
  [["a\r~."],                "a\r TERMINATE"],
  [["a\n~."],                "a\n TERMINATE"],
  [["abc\x03~."],            "abc\x03 TERMINATE"],
  [["abc\x15~."],            "abc\x15 TERMINATE"],
  [["~~."],                  "~~."],
  [["~x~."],                 "~x~."],
  [["~\r~."],                "~\r TERMINATE"],
  [["~\x1a"],                "SUSPEND"],
  [["~\x1a~."],              "SUSPEND TERMINATE"],
  [["~\x1als\r"],            "SUSPEND ls\r"],
  [["x~\x1a"],               "x~\x1a"],
  [["~", "u", "ser\r", "~"], "~u ser\r"],
  [["~.more"],               "TERMINATE"],
];

test("a tilde at the beginning of a line, and what follows it", () => {
  for (const [pieces, expected] of TYPED) {
    const read = escapeReader(CONTROLS);
    const got = pieces
      .flatMap((piece) => read(Buffer.from(piece)))
      .map((typed) => (typed.kind === "send" ? Buffer.from(typed.bytes).toString() : typed.kind.toUpperCase()));
    assert.equal(got.join(" "), expected, JSON.stringify(pieces));
  }
});

/** A user at a simulated terminal. */
function fakeTerminal() {
  const handlers = new Map<TerminalSignal, () => void>();
  const seen = { modes: [] as string[], screen: "" };
  let take: ((bytes: Uint8Array) => void) | null = null;
  let gone: (() => void) | undefined;
  const terminal: Terminal = {
    window: () => ({ rows: 24, columns: 80 }),
    controls: CONTROLS,
    raw: () => void seen.modes.push("raw"),
    restore: () => void seen.modes.push("restored"),
    write: (bytes) => {
      seen.screen += Buffer.from(bytes).toString();
    },
    listen: (next, ended) => {
      take = next;
      if (ended !== undefined) gone = ended;
    },
    onSignal: (signal, handler) => {
      handlers.set(signal, handler);
      return () => void handlers.delete(signal);
    },
    suspend: () => void seen.modes.push("suspended"),
  };
  return {
    terminal,
    seen,
    handlers,
    signal: (signal: TerminalSignal) => handlers.get(signal)?.(),
    type: async (text: string) => {
      await until(() => take !== null);
      take?.(Buffer.from(text));
    },
    hangUp: () => gone?.(),
  };
}

async function until(ask: () => boolean): Promise<void> {
  for (let turn = 0; !ask(); turn++) {
    if (turn > 20_000) throw new Error("it never came");
    await sleep(1);
  }
}

/** A server that reports the job's end when the test asks for it. */
function world(words: readonly string[] = ["-I"], options: { readonly refusal?: Answer; readonly not_told?: Answer } = {}) {
  const user = fakeTerminal();
  const text = { out: "", err: "", gone: false };
  const submitted = Promise.withResolvers<QueueJobRequest & { readonly terminal: TerminalTicket }>();
  const over = Promise.withResolvers<void>();
  let { not_told } = options;
  const { complex, requests } = fakeComplex({
    answer: (request: Request) => {
      if (request.kind === "status") return { items: [] };
      if (request.kind === "wait-job" && not_told !== undefined) {
        const answer = not_told;
        not_told = undefined;
        return answer;
      }
      if (request.kind !== "queue-job") return {};
      submitted.resolve(request as never);
      return options.refusal ?? { value: { id: "7.HOST" } };
    },
  });
  const connect = complex.connect;
  const patient = {
    ...complex,
    connect: async () => {
      const link = await connect();
      const request: typeof link.request = async (asked, how) => {
        const reply = await link.request(asked, how);
        if (asked.kind === "wait-job" && reply.ok) await over.promise;
        return reply;
      };
      return { ...link, request };
    },
  };
  const io: CommandIo = {
    argv: words,
    env: { HOME: "/home/alice", LOGNAME: "alice", TERM: "vt100" },
    cwd: "/",
    out: (more) => {
      if (text.gone) throw new Error("the terminal has gone");
      text.out += more;
    },
    err: (more) => {
      text.err += more;
    },
    stdin: { isTTY: true } as CommandIo["stdin"],
    stdoutIsTty: true,
    stderrIsTty: true,
    terminal: async () => user.terminal,
  };
  return { user, text, requests, submitted: submitted.promise, jobEnds: over.resolve, status: qsub(io, patient) };
}

/** The relay on the execution host. */
async function call(ticket: TerminalTicket, job = "7.HOST") {
  const frames: TerminalFrame[] = [];
  let closed = false;
  const channel: TerminalChannel = await dialTerminal(ticket, () => ({
    onFrame: (frame) => void frames.push(frame),
    onClose: () => {
      closed = true;
    },
  }));
  channel.send({ kind: "hello", job });
  return {
    channel,
    frames,
    isClosed: () => closed,
    typed: () => frames.map((frame) => (frame.kind === "data" ? Buffer.from(frame.bytes).toString() : "")).join(""),
  };
}

test("a session from its submission to its end", async () => {
  const { user, text, submitted, status } = world();
  const request = await submitted;
  assert.equal(request.script, null);
  assert.ok(request.attrs.some(({ name, value }) => name === "interactive" && value === "True"));
  const relay = await call(request.terminal);
  await until(() => relay.frames.length > 0);
  assert.deepEqual(relay.frames[0], { kind: "shape", shape: { rows: 24, columns: 80, term: "vt100", controls: CONTROLS } });
  relay.channel.send({ kind: "data", bytes: Buffer.from("$ ") });
  await user.type("ls\r");
  await until(() => relay.typed() === "ls\r" && user.seen.screen === "$ ");
  user.signal("SIGWINCH");
  await until(() => relay.frames.some(({ kind }) => kind === "window"));
  await user.type("~\x1a");
  assert.deepEqual(user.seen.modes, ["raw", "restored", "suspended", "raw"]);
  relay.channel.send({ kind: "end" });
  assert.equal(await status, 0);
  assert.equal(text.out, "qsub: waiting for job 7.HOST to start\nqsub: job 7.HOST ready\n\n\nqsub: job 7.HOST completed\n");
  assert.equal(text.err, "");
  assert.equal(user.seen.modes.at(-1), "restored");
  assert.equal(user.handlers.size, 0);
  await until(relay.isClosed);
});

// biome-ignore format: one row a case
const ENDS: readonly (readonly [what: string, end: (w: ReturnType<typeof world>, relay: Awaited<ReturnType<typeof call>>) => void, status: number, err: string])[] = [
  ["~. is typed",               ({ user }) => void user.type("~."),              0,   ""],
  ["qsub is told to end",       ({ user }) => user.signal("SIGTERM"),            143, ""],
  ["its terminal hangs up",     ({ user }) => user.signal("SIGHUP"),             129, ""],
  ["nothing more can be typed", ({ user }) => user.hangUp(),                     129, ""],
  ["the job's host is gone",    (_, { channel }) => channel.destroy(),           1,   "\nqsub: the connection to the job was lost\n"],
];

for (const [what, end, expected, err] of ENDS)
  test(`a session ends: ${what}`, async () => {
    const w = world();
    const relay = await call((await w.submitted).terminal);
    await until(() => w.text.out.includes("ready"));
    end(w, relay);
    assert.equal(await w.status, expected);
    assert.equal(w.user.seen.modes.at(-1), "restored");
    assert.match(w.text.out, /\nqsub: job 7\.HOST completed\n$/);
    assert.equal(w.text.err, err);
    await until(relay.isClosed);
  });

test("another job's terminal is not taken", async () => {
  const { text, submitted, status } = world();
  await call((await submitted).terminal, "8.HOST");
  assert.equal(await status, 1);
  assert.equal(text.err, "qsub: invalid job name from execution server\n");
  assert.doesNotMatch(text.out, /ready/);
});

test("a job that ends before it calls", async () => {
  const { text, submitted, jobEnds, status } = world();
  await submitted;
  jobEnds();
  assert.equal(await status, 1);
  assert.equal(text.err, "qsub: job 7.HOST apparently deleted\n");
});

test("a server that cannot say whether the job is there is asked again; one that knows no such job is believed", async () => {
  const busy = world(["-I"], { not_told: { code: 15010, text: "PBS server internal error" } });
  await busy.submitted;
  const waits = (): number => busy.requests.filter(({ kind }) => kind === "wait-job").length;
  await until(() => waits() === 2);
  assert.equal(busy.text.err, "");
  busy.jobEnds();
  assert.equal(await busy.status, 1);
  const gone = world(["-I"], { not_told: { code: 15001, text: "Unknown Job Id" } });
  assert.equal(await gone.status, 1);
  assert.equal(gone.text.err, "qsub: job 7.HOST apparently deleted\n");
});

test("a job that calls while its user is asked waits for the answer", async () => {
  const { user, text, submitted, status, requests } = world();
  const { terminal } = await submitted;
  await until(() => text.out.includes("waiting"));
  user.signal("SIGINT");
  const relay = await call(terminal);
  await user.type("no idea\n");
  await user.type("n\n");
  await until(() => text.out.includes("ready"));
  relay.channel.send({ kind: "end" });
  assert.equal(await status, 0);
  assert.ok(!requests.some(({ kind }) => kind === "delete-job"));
});

// biome-ignore format: one row a case
const LEAVING: readonly (readonly [what: string, leave: (user: ReturnType<typeof fakeTerminal>) => Promise<void>, status: number])[] = [
  ["yes",                 async (user) => { user.signal("SIGINT"); await user.type("Y\n"); },  2],
  ["no answer at all",    async (user) => { user.signal("SIGINT"); user.hangUp(); },           2],
  ["the terminal's end",  async (user) => user.signal("SIGHUP"),                               129],
];

for (const [what, leave, expected] of LEAVING)
  test(`while it waits its user goes: ${what}`, async () => {
    const { user, text, submitted, status, requests } = world();
    await submitted;
    await until(() => text.out.includes("waiting"));
    await leave(user);
    assert.equal(await status, expected);
    assert.match(text.out, /Job 7\.HOST is being deleted\n$/);
    assert.deepEqual(requests.at(-1), { kind: "delete-job", job: "7.HOST" });
  });

test("a terminal that has gone ends whoever writes to it: the job is deleted before", async () => {
  const { user, text, submitted, status, requests } = world();
  await submitted;
  await until(() => text.out.includes("waiting"));
  text.gone = true;
  user.signal("SIGHUP");
  await assert.rejects(status, { message: "the terminal has gone" });
  assert.deepEqual(requests.at(-1), { kind: "delete-job", job: "7.HOST" });
});

test("what cannot be is told: warnings, and the server's refusal", async () => {
  const { text, status } = world(["-I", "-r", "y", "-W", "block=true"], { refusal: { code: 15018, text: "Unknown queue" } });
  assert.equal(await status, 15018 % 256);
  assert.equal(
    text.err,
    'qsub (Warning) : setting "block" attribute as "true" for an interactive job will not return job\'s exit status\n' +
      "qsub (Warning): Interactive jobs will be treated as not rerunnable\nqsub: Unknown queue\n",
  );
  assert.equal(text.out, "");
});
