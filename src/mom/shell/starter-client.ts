// The mom's end of the link to its starter: connects to the one that runs, starts one where none does, and comes back when it is lost.
//
// A1. What is sent while there is no starter is dropped: its state, told at every connect, makes the core ask again.

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { connect } from "node:net";
import { peerCredentials } from "#protocol/wire/peer-credentials.ts";
import { socketAddress } from "#protocol/wire/socket-path.ts";
import { steady_ms } from "#support/clock.ts";
import { frameLink, type Link } from "../host/frame-link.ts";
import { siblingProgram } from "../host/sibling.ts";
import { type MomToStarter, type RunKey, STARTER_SOCKET, type StarterToMom, type StartSpec } from "../job/starter-link.ts";

export type StarterHandlers = { readonly [T in Exclude<keyof StarterToMom, "starter-pong">]: (data: StarterToMom[T]) => void };

export type StarterClient = {
  start(spec: StartSpec): void;
  signal(run: RunKey, signal: number): void;
  adopt(run: RunKey, pid: number): void;
  forget(run: RunKey): void;
  /** pings the starter, and returns the time in ms for which it has not answered */
  silent_ms(): number;
  /** the starter may end if it has no jobs */
  quit(): void;
  close(): void;
};

const AGAIN_MS = 200;

/** directory: mom_priv. onLost: the connection broke (a new one is being made). */
export function connectStarter(
  directory: string,
  handlers: StarterHandlers & { readonly onLost: () => void; readonly complain: (text: string) => void },
): StarterClient {
  let link: Link<MomToStarter> | null = null;
  let closed = false;
  let starts: StartSpec[] = [];
  let signals: (RunKey & { signal: number })[] = [];
  let forgets: RunKey[] = [];
  let scheduled = false;
  /** whether the starter answers pings, and when the unanswered ping was sent */
  let pongs = false;
  let pinged_ms: number | null = null;
  const heard: StarterHandlers & Pick<{ readonly [T in keyof StarterToMom]: (data: StarterToMom[T]) => void }, "starter-pong"> = {
    ...handlers,
    "starter-state": (data) => {
      pongs = data.pongs === true;
      handlers["starter-state"](data);
    },
    "starter-pong": () => {
      pinged_ms = null;
    },
  };

  const again = (): void => {
    if (!closed) setTimeout(dial, AGAIN_MS);
  };

  function dial(): void {
    if (closed) return;
    const { address, release } = socketAddress(`${directory}/${STARTER_SOCKET}`);
    const socket = connect(address);
    socket.once("error", () => {
      release();
      launchStarter(directory, handlers.complain).then(() => (closed ? undefined : dial()), again);
    });
    socket.once("connect", () => {
      release();
      const peer = peerCredentials(socket);
      if (peer === null || (peer.uid !== 0 && peer.uid !== process.getuid?.())) {
        handlers.complain(`starter.sock is served by uid ${peer?.uid ?? "unknown"}: not our starter`);
        socket.destroy();
        again();
        return;
      }
      socket.removeAllListeners("error");
      link = frameLink<StarterToMom, MomToStarter>(socket, heard, () => {
        link = null;
        pongs = false;
        pinged_ms = null;
        if (closed) return;
        handlers.onLost();
        again();
      });
      link.send("starter-hello", {});
    });
  }
  dial();

  const flush = (): void => {
    scheduled = false;
    if (starts.length > 0) link?.send("starter-start", { runs: starts });
    if (signals.length > 0) link?.send("starter-signal", { runs: signals });
    if (forgets.length > 0) link?.send("starter-forget", { runs: forgets });
    starts = [];
    signals = [];
    forgets = [];
  };
  const schedule = (): void => {
    if (!scheduled) queueMicrotask(flush);
    scheduled = true;
  };
  return {
    start(spec) {
      starts.push(spec);
      schedule();
    },
    signal(run, signal) {
      // Two signals to one run in one turn (TERM, CONT) are two messages: the starter keeps one per run and message.
      if (signals.some((other) => other.job === run.job)) flush();
      signals.push({ ...run, signal });
      schedule();
    },
    adopt(run, pid) {
      flush();
      link?.send("starter-adopt", { runs: [{ ...run, pid }] });
    },
    forget(run) {
      forgets.push(run);
      schedule();
    },
    silent_ms() {
      if (!pongs || link === null) return 0;
      if (pinged_ms !== null) return steady_ms() - pinged_ms;
      pinged_ms = steady_ms();
      link.send("starter-ping", {});
      return 0;
    },
    quit() {
      flush();
      link?.send("starter-quit", {});
    },
    close() {
      flush();
      closed = true;
      link?.close();
    },
  };
}

const READY_MS_MAX = 30_000;

/** Starts a starter that outlives us; resolves when it listens, or when it ended because there is one already. */
function launchStarter(directory: string, complain: (text: string) => void): Promise<void> {
  return new Promise((resolve, fail) => {
    const log = openSync(`${directory}/starter.log`, "a", 0o600);
    const child: ChildProcess = spawn(process.execPath, [siblingProgram("starter"), directory], {
      argv0: "pbs_starter",
      detached: true,
      stdio: ["ignore", "pipe", log],
      cwd: "/",
      env: { PATH: "/usr/bin:/bin:/usr/sbin:/sbin", ...(process.env["TZ"] === undefined ? {} : { TZ: process.env["TZ"] }) },
    });
    closeSync(log);
    const timer = setTimeout(() => done(new Error("it does not get ready")), READY_MS_MAX);
    const done = (error: Error | null): void => {
      clearTimeout(timer);
      child.stdout?.destroy();
      child.removeAllListeners();
      child.on("error", () => undefined);
      child.unref();
      if (error !== null) complain(`starter: ${error.message}`);
      if (error === null) resolve();
      else fail(error);
    };
    child.stdout?.once("data", () => done(null));
    child.once("error", done);
    child.once("exit", (status) => done(status === 3 ? null : new Error(`ended with status ${status}; see ${directory}/starter.log`)));
  });
}
