// One connection on the server's side: its limits, its counters, and what is sent.
//
// L1. Requests wait as text: a frame is decoded when its turn comes. While a request waits, nothing more is read from its
//     client. A client that sends faster than
//     it is served therefore fills its own socket and not the server's memory.
// L2. A client is not served while it has too many open requests or does not read its replies. If a user exceeds a limit over
//     all connections, the connections
//     that contribute to it wait, and the others are served.
// L3. The text of incomplete and waiting requests is bounded over all connections of a user, except for one request. Beyond the
//     bound no connection is read
//     while a complete request waits, because serving it makes room. If no request is complete, one connection is read until
//     its request is complete.

import type { Socket } from "node:net";
import { encodeFrame, encodePartFrame, type Frame, FrameError, frameDecoder } from "./frame.ts";
import { allowedOf, type IpcServer, setInbox } from "./ipc.ts";
import type { Limits } from "./limits.ts";
import { type Outbox, outbox } from "./link.ts";
import type { PeerCredentials } from "./peer-credentials.ts";
import type { Reply } from "./reply.ts";

/** One connection, as the server sees it. */
export type ServerLink = {
  /** unique in the life of this process */
  readonly id: number;
  readonly peer: PeerCredentials;
  readonly open: boolean;
  /** requests read and not yet answered by reply() */
  readonly open_requests: number;
  /** length of the frame that onFrame received last */
  readonly frame_chars: number;
  /** Passes the next frame to onFrame if one waits and may be served now. Returns whether another frame can follow at once. */
  serveNext(): boolean;
  /** no further frame is served until release() is called */
  hold(): void;
  release(): void;
  send(type: string, data: unknown): void;
  /** sends the text of a complete frame (frame.ts) */
  sendText(text: string): void;
  /** sends the one reply of a request and decreases open_requests */
  reply(reply: Reply): void;
  /** sends a part of items that are already JSON texts */
  part(id: number, items: readonly string[]): void;
  /** sends the frames of a large reply, made on demand while the reader keeps up (the reply() follows them in order) */
  sendFrames(frames: Iterable<string>): Promise<void>;
  /** the peer proved to be a daemon of this complex, and the limits of daemons apply from now on */
  welcome(): void;
  /** ends the link after everything sent has left */
  end(): void;
  /** ends the link now */
  destroy(): void;
};

export type LinkHandlers = {
  onLink?(link: ServerLink): void;
  /** A client's frame waits and may be served: the owner must call serveNext() in turn. If absent, frames are served at once. */
  onReady?(link: ServerLink): void;
  onFrame(link: ServerLink, type: string, data: unknown): void;
  onClose?(link: ServerLink): void;
  /** a connection was refused or ended for a reason that belongs in the log */
  onProblem?(text: string, peer: PeerCredentials | null): void;
};

export type LinkState = { readonly link: ServerLink; refused: boolean; closed(): void };

/** Totals over all connections of a user. */
export type UserLoad = {
  connections: number;
  /** characters of incomplete frames, of unserved complete frames, of unanswered requests, and of unread replies */
  pending_chars: number;
  waiting_chars: number;
  open_chars: number;
  unread_chars: number;
  /** connections that are not read (L3); each callback is called when there may be room again */
  readonly not_read: Set<() => void>;
  /** the connection that is read although there is no room; null: none */
  reader: (() => void) | null;
};

/** The load of a user without connections. */
export const userLoad = (): UserLoad => ({
  connections: 0,
  pending_chars: 0,
  waiting_chars: 0,
  open_chars: 0,
  unread_chars: 0,
  not_read: new Set(),
  reader: null,
});

/** The server's side of one connection: limits, counting, sending. limits are read at each use, so that they may change. */
export function linkState(
  server: IpcServer,
  socket: Socket,
  peer: PeerCredentials,
  limits: Limits,
  user: UserLoad,
  handlers: LinkHandlers,
): LinkState {
  let welcomed = false;
  let held = false;
  let announced = false;
  let serving = false;
  let receive: (frame: Frame) => void = () => undefined;
  const open = openRequests(user);
  let pending = 0;
  let waiting = 0;
  let unread = 0;
  let frame_chars = 0;
  let frameTimer: NodeJS.Timeout | null = null;
  let roomTimer: NodeJS.Timeout | null = null;
  const decoder = frameDecoder(limits.request_frame_chars_max, allowedOf(server));
  const breakOff = (why: string): void => {
    if (socket.destroyed) return;
    state.refused = true;
    handlers.onProblem?.(why, peer);
    socket.destroy();
  };
  const out: Outbox = outbox(socket, {
    write: (text) => void server.write(socket, text),
    limits: () => ({
      write_ahead_bytes: limits.write_ahead_bytes,
      queue_chars_max: welcomed ? limits.daemon_queue_chars_max : limits.client_queue_chars_max,
      stalled_reader_ms: welcomed ? limits.stalled_daemon_ms : limits.stalled_reader_ms,
    }),
    giveUp: breakOff,
    onRoom: () => goOn(),
  });
  const rate = frameRate(limits, () => goOn());

  const countUnread = (): void => {
    const now = socket.destroyed ? 0 : out.queued_chars + socket.writableLength;
    user.unread_chars += now - unread;
    unread = now;
  };
  /** L2 */
  const isHeldBack = (): boolean => {
    countUnread();
    if (unread > limits.unread_reply_chars_max || (user.unread_chars > limits.user_unread_chars_max && unread > 0)) {
      // The reader must continue to read, or it is given up. Node does not report when the last bytes leave the socket, so the
      // link polls.
      out.watch();
      roomTimer ??= setTimeout(() => {
        roomTimer = null;
        goOn();
      }, ROOM_MS).unref();
      return true;
    }
    return open.count >= limits.open_requests_max || (user.open_chars > limits.user_open_chars_max && open.count > 0);
  };
  const mayServe = (): boolean => welcomed || (!held && rate.has_some && !isHeldBack());
  /** L3 */
  const mayRead = (): boolean => {
    if (welcomed || pending === 0 || user.pending_chars + user.waiting_chars <= limits.user_pending_chars_max) return true;
    if (user.waiting_chars > 0) return false;
    user.reader ??= goOn;
    return user.reader === goOn;
  };
  const readOn = (): void => {
    if (socket.isPaused() && !mayServe()) return;
    if (!mayRead()) {
      socket.pause();
      user.not_read.add(goOn);
    } else if (socket.isPaused()) {
      frameTimer?.refresh();
      socket.resume();
    }
  };
  const readOthers = (): void => {
    if (user.not_read.size === 0) return;
    const links = [...user.not_read];
    user.not_read.clear();
    for (const each of links) each();
  };
  const isOver = (): boolean => state.refused || socket.destroyed;

  /** Called when a frame waits or there is room again: announces the frame, or reads more. */
  const goOn = (): void => {
    if (isOver() || serving) return;
    if (!decoder.ready) return readOn();
    if (!welcomed) socket.pause();
    if (!mayServe()) return;
    if (handlers.onReady === undefined || welcomed) {
      while (serveNext());
    } else if (!announced) {
      announced = true;
      handlers.onReady(link);
    }
  };

  const serveNext = (): boolean => {
    announced = false;
    if (isOver() || !decoder.ready || !mayServe()) return false;
    serving = true;
    try {
      const taken = decoder.take();
      if (taken !== null) {
        frame_chars = taken.chars;
        if (taken.frame.type === "request") open.add(taken.frame, taken.chars);
        if (!welcomed) rate.spend();
        receive(taken.frame);
      }
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      breakOff(error.message);
      return false;
    } finally {
      serving = false;
      countText();
    }
    if (!isOver() && decoder.ready && mayServe()) return true;
    if (!decoder.ready) goOn();
    return false;
  };

  const countText = (): void => {
    const is_less = decoder.waiting < waiting;
    user.pending_chars += decoder.pending - pending;
    user.waiting_chars += decoder.waiting - waiting;
    pending = decoder.pending;
    waiting = decoder.waiting;
    if (user.reader === goOn && decoder.ready) user.reader = null;
    if (is_less) readOthers();
  };
  const timeFrame = (): void => {
    if (frameTimer !== null && pending === 0) {
      clearTimeout(frameTimer);
      frameTimer = null;
    } else if (pending > 0) {
      frameTimer ??= setTimeout(() => frameIsLate(), limits.frame_ms_max).unref();
    }
  };
  /** A frame that is not read because others before it wait does not count as late. */
  const frameIsLate = (): void => {
    frameTimer = null;
    if (socket.isPaused()) frameTimer = setTimeout(() => frameIsLate(), limits.frame_ms_max).unref();
    else breakOff("a frame was not completed in time");
  };

  setInbox(socket, (chunk, dispatch) => {
    receive = dispatch;
    decoder.add(chunk);
    countText();
    timeFrame();
    goOn();
  });

  const link: ServerLink = {
    id: next_link_id++,
    peer,
    get open() {
      return !isOver();
    },
    get open_requests() {
      return open.count;
    },
    get frame_chars() {
      return frame_chars;
    },
    serveNext,
    hold() {
      held = true;
    },
    release() {
      held = false;
      goOn();
    },
    send: (type, data) => out.send(encodeFrame(type, data)),
    sendText: (text) => out.send(text),
    reply(reply) {
      out.send(encodeFrame("reply", reply));
      open.remove(reply.id);
      if (decoder.ready || socket.isPaused()) goOn();
    },
    part: (id, items) => out.send(encodePartFrame(id, items)),
    sendFrames: (frames) => out.sendFrames(frames),
    welcome() {
      welcomed = true;
      decoder.limit = limits.daemon_frame_chars_max;
    },
    end: () => out.end(),
    destroy: () => void socket.destroy(),
  };
  const state: LinkState = {
    link,
    refused: false,
    closed() {
      if (frameTimer !== null) clearTimeout(frameTimer);
      if (roomTimer !== null) clearTimeout(roomTimer);
      rate.stop();
      open.clear();
      user.not_read.delete(goOn);
      if (user.reader === goOn) user.reader = null;
      user.pending_chars -= pending;
      user.waiting_chars -= waiting;
      user.unread_chars -= unread;
      pending = waiting = unread = 0;
      readOthers();
    },
  };
  return state;
}

let next_link_id = 1;

/** The unanswered requests of a connection with the lengths of their texts. Requests with the same id are counted together. */
function openRequests(user: UserLoad) {
  const chars_of = new Map<number, number>();
  let count = 0;
  const forget = (chars: number): void => {
    user.open_chars -= chars;
  };
  return {
    get count() {
      return count;
    },
    add(frame: Frame, chars: number): void {
      const id = Number((frame.data as { readonly id?: unknown } | null)?.id);
      count++;
      user.open_chars += chars;
      chars_of.set(id, (chars_of.get(id) ?? 0) + chars);
    },
    remove(id: number): void {
      count--;
      forget(chars_of.get(id) ?? 0);
      chars_of.delete(id);
    },
    clear(): void {
      for (const chars of chars_of.values()) forget(chars);
      chars_of.clear();
    },
  };
}

/** Interval at which a connection that waits for unread replies is checked. */
const ROOM_MS = 50;
const REFILL_MS = 50;

/** Frames a second: the bucket holds one second's worth. While it is empty no frame is served. */
function frameRate(limits: Limits, onSome: () => void) {
  let left = limits.frames_per_s_max;
  let refilled_ms = performance.now();
  let timer: NodeJS.Timeout | null = null;
  const stop = (): void => {
    if (timer !== null) clearInterval(timer);
    timer = null;
  };
  const refill = (): void => {
    const now_ms = performance.now();
    left = Math.min(limits.frames_per_s_max, left + ((now_ms - refilled_ms) / 1000) * limits.frames_per_s_max);
    refilled_ms = now_ms;
  };
  return {
    get has_some() {
      return left > 0;
    },
    spend(): void {
      if (--left > 0) return;
      refill();
      if (left > 0) return;
      timer ??= setInterval(() => {
        refill();
        if (left <= 0) return;
        stop();
        onSome();
      }, REFILL_MS).unref();
    },
    stop,
  };
}
