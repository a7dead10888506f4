// One connection as the server sees it: its limits, what is counted, what is sent.

import type { Socket } from "node:net";
import { encodeFrame, encodePartFrame, FrameError, frameDecoder } from "./frame.ts";
import { allowedOf, type IpcServer, setInbox } from "./ipc.ts";
import type { Limits } from "./limits.ts";
import { type Outbox, outbox } from "./link.ts";
import type { Reply } from "./messages.ts";
import type { PeerCredentials } from "./peer-credentials.ts";

/** One connection, seen from the server. */
export type ServerLink = {
  /** unique in this process' life */
  readonly id: number;
  readonly peer: PeerCredentials;
  readonly open: boolean;
  /** requests read and not yet answered by reply() */
  readonly open_requests: number;
  send(type: string, data: unknown): void;
  /** a whole frame's text (frame.ts) */
  sendText(text: string): void;
  /** the one reply of a request (counts against open_requests) */
  reply(reply: Reply): void;
  /** a part of items that are JSON texts already */
  part(id: number, items: readonly string[]): void;
  /** frames of a big reply, made on demand while the reader keeps up (its reply() goes after it by itself) */
  sendFrames(frames: Iterable<string>): Promise<void>;
  /** the peer proved to be a daemon of this complex: a daemon's limits from now on */
  welcome(): void;
  /** ends it after what was sent has left */
  end(): void;
  /** ends it now */
  destroy(): void;
};

export type LinkHandlers = {
  onLink?(link: ServerLink): void;
  onFrame(link: ServerLink, type: string, data: unknown): void;
  onClose?(link: ServerLink): void;
  /** a connection was refused or ended for a reason worth a log line */
  onProblem?(text: string, peer: PeerCredentials | null): void;
};

export type LinkState = { readonly link: ServerLink; refused: boolean; closed(): void };

/** The server's side of one connection: limits, counting, sending. */
export function linkState(
  server: IpcServer,
  socket: Socket,
  peer: PeerCredentials,
  limits: Limits,
  user: { pending_chars: number },
  handlers: LinkHandlers,
): LinkState {
  let welcomed = false;
  let open_requests = 0;
  let pending = 0;
  let frames_left = limits.frames_per_s_max;
  let refilled_ms = performance.now();
  let frameTimer: NodeJS.Timeout | null = null;
  let rateTimer: NodeJS.Timeout | null = null;
  const decoder = frameDecoder(limits.request_frame_chars_max, allowedOf(server));
  const queueLimits = () => ({
    write_ahead_bytes: limits.write_ahead_bytes,
    queue_chars_max: welcomed ? limits.daemon_queue_chars_max : limits.client_queue_chars_max,
    stalled_reader_ms: welcomed ? limits.stalled_daemon_ms : limits.stalled_reader_ms,
  });
  const breakOff = (why: string): void => {
    if (socket.destroyed) return;
    state.refused = true;
    handlers.onProblem?.(why, peer);
    socket.destroy();
  };
  const out: Outbox = outbox(socket, {
    write: (text) => void server.write(socket, text),
    limits: queueLimits,
    giveUp: breakOff,
    onRoom: () => mayRead(),
  });

  const stopRateTimer = (): void => {
    if (rateTimer !== null) clearInterval(rateTimer);
    rateTimer = null;
  };
  const refill = (): void => {
    const now_ms = performance.now();
    frames_left = Math.min(limits.frames_per_s_max, frames_left + ((now_ms - refilled_ms) / 1000) * limits.frames_per_s_max);
    refilled_ms = now_ms;
  };
  /** Frames a second: the bucket holds one second's worth; an empty one stops the reading until it has some again. */
  const spend = (): void => {
    if (welcomed || --frames_left > 0) return;
    refill();
    if (frames_left > 0) return;
    socket.pause();
    rateTimer ??= setInterval(() => {
      refill();
      if (frames_left <= 0) return;
      stopRateTimer();
      mayRead();
    }, 50).unref();
  };
  /** Whoever has too many requests open, or does not take his replies, is not read from. */
  const isHeldBack = (): boolean => open_requests >= limits.open_requests_max || out.queued_chars > limits.unread_reply_chars_max;
  const mayRead = (): void => {
    if (socket.isPaused() && frames_left > 0 && !isHeldBack() && !socket.destroyed) socket.resume();
  };
  const countPending = (): void => {
    user.pending_chars += decoder.pending - pending;
    pending = decoder.pending;
    if (user.pending_chars > limits.user_pending_chars_max && !welcomed && pending > 0)
      return breakOff("too much text in incomplete frames");
    if (frameTimer !== null && pending === 0) {
      clearTimeout(frameTimer);
      frameTimer = null;
    } else if (pending > 0) {
      frameTimer ??= setTimeout(() => breakOff("a frame was not completed in time"), limits.frame_ms_max).unref();
    }
  };

  setInbox(socket, (chunk, receive) => {
    try {
      decoder.push(chunk, (frame) => {
        // A paused or refused connection may still have frames in this chunk: the former are served, the latter are not.
        if (state.refused) return;
        if (frame.type === "request") open_requests++;
        if (isHeldBack()) socket.pause();
        spend();
        receive(frame);
      });
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      return breakOff(error.message);
    }
    countPending();
  });

  const link: ServerLink = {
    id: next_link_id++,
    peer,
    get open() {
      return !socket.destroyed && !state.refused;
    },
    get open_requests() {
      return open_requests;
    },
    send: (type, data) => out.send(encodeFrame(type, data)),
    sendText: (text) => out.send(text),
    reply(reply) {
      out.send(encodeFrame("reply", reply));
      open_requests--;
      if (open_requests < limits.open_requests_max / 2) mayRead();
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
      stopRateTimer();
      user.pending_chars -= pending;
      pending = 0;
    },
  };
  return state;
}

let next_link_id = 1;
