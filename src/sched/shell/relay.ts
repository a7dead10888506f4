// A scheduler on another host than the server that runs as its sched_user (option -U). Two processes share its work: the relay, which has the rights of root, the
// host's key and the connection to the server, and its child, the scheduler, which has only the rights of the user.
//
// Y1. The relay passes the frames of the server to its child, and those of its child to the server, over a pair of sockets.
// Y2. The child can speak only for its own scheduler: the relay ends it if it says hello with another name, or sends what is no frame.
// Y3. While the connection to the server takes no more, the relay reads nothing from its child. If the child takes nothing for so long that UNREAD_CHARS_MAX
//     characters wait, the relay ends the connection; the next one begins with the present state.
// Y4. The directories of the scheduler belong to the user, so the relay writes nothing there. The child writes into its log what the relay has to say.
// Y5. The connections of the relay are numbered. What the child has sent on an earlier connection does not reach the server on a later one.
// Y6. The relay ends with its child and with the child's status. The child ends when the relay has gone.

import type { ChildProcess } from "node:child_process";
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { encodeFrame, type Frame, frameDecoder } from "#protocol/wire/frame.ts";
import { LIMITS } from "#protocol/wire/limits.ts";
import { isRecord } from "#support/guards.ts";
import type { DialledLink, DialledWay, ServerEnd, ServerWay } from "./server-way.ts";

/** The child's end of the pair of sockets. The environment variable says that it is open. */
export const RELAY_FD = 4;
export const RELAY_ENV = "PARTITA_SCHED_RELAY";

const UNREAD_CHARS_MAX = 256 * 1024 * 1024;
const UNSENT_CHARS_MAX = 16 * 1024 * 1024;
const LOOK_MS = 50;
/** How long the last frames of a scheduler that has ended may take to leave. */
const DRAIN_MS_MAX = 5000;

/** A frame on the pair of sockets whose data are a frame of the link between server and scheduler. */
const CARRIED = "frame";

type Heard = { readonly type: string; readonly data: { readonly [name: string]: unknown } };

/** Calls `hear` with the frames that arrive. broken: called when something else has arrived. */
function hearFrames(socket: Socket, limit: number, hear: (frame: Heard) => void, broken: () => void): void {
  const decoder = frameDecoder(limit);
  socket.setEncoding("utf8").on("data", (chunk) => {
    try {
      decoder.push(String(chunk), ({ type, data }: Frame) => hear({ type, data: isRecord(data) ? data : {} }));
    } catch {
      broken();
    }
  });
}

// --- the child

/** The log of a process: an event class (LOG_EVENT) and a line. */
type Note = (event: number, text: string) => void;

/** The way to the server for a scheduler that has a relay. note: writes into the log. gone: called when the relay has gone (Y6). */
export function relayedWay(note: Note, gone: () => void): ServerWay {
  const socket = new Socket({ fd: RELAY_FD, readable: true, writable: true });
  return (end) => {
    /** of the present connection (Y5) */
    let number = 0;
    socket.on("error", () => undefined);
    socket.on("close", gone);
    const hear = ({ type, data }: Heard): void => {
      const { why, text, event } = data;
      if (type === "opened") {
        number = Number(data["number"]);
        end.opened();
      } else if (type === CARRIED) end.frame(String(data["type"]), data["data"]);
      else if (type === "lost") end.lost(String(why));
      else if (type === "unreachable") end.unreachable(String(why));
      else if (type === "note") note(Number(event), String(text));
    };
    hearFrames(socket, Number.POSITIVE_INFINITY, hear, () => socket.destroy());
    return {
      send: (type, data) => void socket.write(encodeFrame(CARRIED, { number, type, data })),
      reconnect: () => void socket.write(encodeFrame("reconnect", { number })),
      close() {
        socket.off("close", gone);
        socket.end();
      },
    };
  };
}

// --- the relay

export type RelayOptions = {
  /** the name of the scheduler */
  readonly name: string;
  /** makes the way to the server. note: what the log shall say */
  readonly open: (note: Note) => Promise<DialledWay>;
  /** starts the scheduler, with its end of the pair of sockets as descriptor RELAY_FD */
  readonly start: () => ChildProcess;
  /** writes what is wrong, if the child cannot write it any more */
  readonly complain: (text: string) => void;
};

/** Runs a scheduler behind a relay. Resolves with the status of its end. Rejects if the way to the server cannot be made: the message says why. */
export async function runRelayed({ name, open, start, complain }: RelayOptions): Promise<number> {
  let socket: Socket | null = null;
  const say = (type: string, data: object): void => void socket?.write(encodeFrame(type, data));
  const early: { readonly event: number; readonly text: string }[] = [];
  const way = await open((event, text) => (socket === null ? void early.push({ event, text }) : say("note", { event, text })));
  const child = start();
  const pair = child.stdio[RELAY_FD];
  if (!(pair instanceof Socket)) throw new Error("the scheduler has no connection to its relay");
  socket = pair;
  pair.on("error", () => undefined);
  for (const note of early) say("note", note);
  const link = linkOf(way, pair, say);
  const wrong = (text: string): void => {
    complain(`the scheduler ${name} is ended: ${text}`);
    child.kill("SIGKILL");
  };
  const hear = ({ type, data }: Heard): void => {
    if (data["number"] !== link.number()) return;
    if (type === "reconnect") return link.reconnect("broken");
    const frame = type === CARRIED ? data["data"] : null;
    if (!isRecord(frame)) return wrong("it sent what is no message");
    if (data["type"] === "sched-hello" && frame["name"] !== name) return wrong("it said hello with another name");
    link.pass(String(data["type"]), frame);
    if (link.unsent_chars() > UNSENT_CHARS_MAX) rest(pair, () => link.unsent_chars() <= UNSENT_CHARS_MAX);
  };
  hearFrames(pair, LIMITS.daemon_frame_chars_max, hear, () => wrong("it sent what is no message"));
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => void child.kill(signal));
  const status = await endOf(child);
  const end_ms = performance.now() + DRAIN_MS_MAX;
  while (link.unsent_chars() > 0 && performance.now() < end_ms) await sleep(LOOK_MS);
  link.close();
  return status;
}

/** Reads nothing from a socket until `isFree` (Y3). */
function rest(socket: Socket, isFree: () => boolean): void {
  socket.pause();
  const timer = setInterval(() => {
    if (!isFree()) return;
    clearInterval(timer);
    socket.resume();
  }, LOOK_MS);
}

/** Connects the way with the child. */
function linkOf(way: DialledWay, pair: Socket, say: (type: string, data: object) => void): DialledLink & { number(): number } {
  let number = 0;
  const end: ServerEnd = {
    opened: () => say("opened", { number: ++number }),
    frame(type, data) {
      say(CARRIED, { type, data });
      if (pair.writableLength > UNREAD_CHARS_MAX) link.reconnect("broken");
    },
    lost: (why) => say("lost", { why }),
    unreachable: (why) => say("unreachable", { why }),
  };
  const link = way(end);
  return { ...link, number: () => number };
}

/** Resolves with the exit status of a process: that of its end, or 1 if a signal has ended it. */
const endOf = (child: ChildProcess): Promise<number> =>
  new Promise((resolve) => {
    child.once("error", () => resolve(1));
    // When this event comes, all output of the process has been read.
    child.once("close", (status) => resolve(status ?? 1));
  });
