// One connection of the server: its limits, its counters, and the data that the server sends on it.
//
// L1. Requests wait as text: a frame is decoded when its turn comes. While a request waits, nothing more is read from its
//     client. A client that sends faster than it is served therefore fills its own socket and not the server's memory.
// L2. A client is not served while it has too many open requests or does not read its replies. If all connections of a user, or of the
//     users of another host, together exceed a limit, those that contribute to the excess wait, and the others are served (share.ts).
// L3. All connections of a user, or of the users of another host, together hold a limited amount of text of incomplete and waiting requests; one request may
//     exceed it. When the limit is reached, no connection is read while a complete request waits, because serving it makes
//     room. If no request is complete, one connection is read until its request is complete.
// L4. When the server ends the link of a daemon on another host, it takes no further frame from the link, and destroys the
//     link after drop_ms_max even if the peer does not close it.
// L5. If the two ends have no common version of the protocol (versions.ts), the peer is told so, and nothing that it sends is served.

import type { Socket } from "node:net";
import { encodeFrame, encodePartFrame, type Frame, FrameError, frameDecoder } from "./frame.ts";
import { allowedOf, type IpcWriter, setInbox } from "./ipc.ts";
import type { Limits } from "./limits.ts";
import { type Outbox, type OutboxLimits, outbox } from "./link.ts";
import { isRemoteUser, type LinkPeer } from "./link-peer.ts";
import type { Reply } from "./reply.ts";
import { type Member, readOn, type Share } from "./share.ts";
import { PBSE_PROTOCOL, type VersionTalk, versionTalk } from "./versions.ts";

export { type LinkPeer, NO_UID } from "./link-peer.ts";

/** One connection, as the server sees it. */
export type ServerLink = {
  /** a number that no other connection of this process has */
  readonly id: number;
  readonly peer: LinkPeer;
  readonly open: boolean;
  /** number of requests that were read and that reply() has not yet answered */
  readonly open_requests: number;
  /** length of the latest frame passed to onFrame */
  readonly frame_chars: number;
  /** Passes the next frame to onFrame if one waits and may be served now. Returns whether another frame can follow at once. */
  serveNext(): boolean;
  /** Stops serving frames of this connection until release() is called. */
  hold(): void;
  release(): void;
  send(type: string, data: unknown): void;
  /** length of what was sent and has not left yet */
  readonly unsent_chars: number;
  /** Sends the text of a complete frame (frame.ts). */
  sendText(text: string): void;
  /** Sends the one reply of a request and decreases open_requests. */
  reply(reply: Reply): void;
  /** Sends a `part` frame of items that are already JSON texts. */
  part(id: number, items: readonly string[]): void;
  /** Sends the frames of a large reply, which are made on demand while the peer takes them. A reply() called later follows them in order. */
  sendFrames(frames: Iterable<string>): Promise<void>;
  /** Called when the peer has proved that it is a daemon of this complex: the limits of daemons apply from now on. */
  welcome(): void;
  /** Ends the link after everything sent has left. */
  end(): void;
  /** Ends the link now. */
  destroy(): void;
};

export type LinkHandlers = {
  onLink?(link: ServerLink): void;
  /** Called when a client's frame waits and may be served: the owner must call serveNext() in turn. If absent, frames are served at once. */
  onReady?(link: ServerLink): void;
  onFrame(link: ServerLink, type: string, data: unknown): void;
  onClose?(link: ServerLink): void;
  /** Called when a connection was refused or ended for a reason that belongs in the log. */
  onProblem?(text: string, peer: LinkPeer | null): void;
  /** whether this end sends the first frame of a link (a scheduler that the server has dialled): it says its versions at once */
  readonly speaks_first?: true;
};

let next_link_id = 1;

/**
 * The server's side of one connection: it applies limits, counts, and sends. `limits` are read at each use, so that they may
 * change. The owner must call closed() when the socket has closed.
 */
export class ServerConnection implements ServerLink, Member {
  readonly id = next_link_id++;
  readonly peer: LinkPeer;
  /** length of the latest frame passed to onFrame */
  frame_chars = 0;
  readonly #socket: Socket;
  readonly #limits: Limits;
  readonly #shares: readonly Share[];
  readonly #handlers: LinkHandlers;
  readonly #decoder: ReturnType<typeof frameDecoder>;
  readonly #out: Outbox;
  readonly #requests: ReturnType<typeof openRequests>;
  readonly #versions: VersionTalk;
  /** Passes a frame to onFrame. */
  #receive: (frame: Frame) => void = () => undefined;
  /** the link was broken off, and none of its requests is served any more */
  #refused = false;
  /** the peer is a daemon of this complex */
  #welcomed = false;
  #held = false;
  #announced = false;
  #serving = false;
  /** this connection's share of the user's load, in characters */
  #pending = 0;
  #waiting = 0;
  #unread = 0;
  /** breaks the connection off if the incomplete frame does not become complete in time */
  #frame_timer: NodeJS.Timeout | null = null;
  /** checks whether the client has read enough replies (L2) */
  #room_timer: NodeJS.Timeout | null = null;
  /** destroys a link that the server has ended (L4); null: it has not */
  #drop_timer: NodeJS.Timeout | null = null;

  constructor(ipc: IpcWriter, socket: Socket, peer: LinkPeer, limits: Limits, shares: readonly Share[], handlers: LinkHandlers) {
    this.peer = peer;
    this.#socket = socket;
    this.#limits = limits;
    this.#shares = shares;
    this.#handlers = handlers;
    this.#decoder = frameDecoder(limits.request_frame_chars_max, allowedOf(ipc));
    this.#requests = openRequests(shares);
    this.#versions = versionTalk({ reserved: handlers.speaks_first !== true });
    this.#out = outbox(socket, {
      write: (text) => void ipc.write(socket, text),
      limits: () => this.#outboxLimits(),
      giveUp: (why) => this.#breakOff(why),
      onRoom: () => this.goOn(),
    });
    setInbox(socket, (chunk, dispatch) => this.#take(chunk, dispatch));
  }

  get open(): boolean {
    return !this.#refused && this.#drop_timer === null && !this.#socket.destroyed;
  }

  get refused(): boolean {
    return this.#refused;
  }

  get open_requests(): number {
    return this.#requests.count;
  }

  hold(): void {
    this.#held = true;
  }

  release(): void {
    this.#held = false;
    this.goOn();
  }

  send(type: string, data: unknown): void {
    this.sendText(encodeFrame(type, data));
  }

  get unsent_chars(): number {
    return this.#socket.destroyed ? 0 : this.#out.queued_chars + this.#socket.writableLength;
  }

  sendText(text: string): void {
    this.#out.send(this.#versions.outgoing(text));
  }

  reply(reply: Reply): void {
    this.sendText(encodeFrame("reply", reply));
    this.#requests.remove(reply.id);
    if (this.#decoder.ready || this.#socket.isPaused()) this.goOn();
  }

  part(id: number, items: readonly string[]): void {
    this.sendText(encodePartFrame(id, items));
  }

  sendFrames(frames: Iterable<string>): Promise<void> {
    return this.#out.sendFrames(frames);
  }

  welcome(): void {
    this.#welcomed = true;
    const { host, sched } = this.peer;
    const is_far_mom = host !== undefined && sched === undefined;
    this.#decoder.limit = is_far_mom ? this.#limits.far_mom_frame_chars_max : this.#limits.daemon_frame_chars_max;
  }

  end(): void {
    this.#out.end();
    if (this.peer.host === undefined || isRemoteUser(this.peer) || this.#drop_timer !== null) return;
    this.#drop_timer = setTimeout(() => this.#socket.destroy(), this.#limits.drop_ms_max).unref();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  serveNext(): boolean {
    this.#announced = false;
    if (!this.open || !this.#decoder.ready || !this.#mayServe()) return false;
    this.#serving = true;
    try {
      const taken = this.#decoder.take();
      if (taken !== null) {
        const strange = this.#versions.incoming(taken.frame);
        if (strange !== null) return this.#refuse(strange);
        this.frame_chars = taken.chars;
        if (taken.frame.type === "request") this.#requests.add(taken.frame, taken.chars);
        if (!this.#welcomed) for (const { rate } of this.#shares) rate.spend();
        this.#receive(taken.frame);
      }
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#breakOff(error.message);
      return false;
    } finally {
      this.#serving = false;
      this.#countText();
    }
    if (this.open && this.#decoder.ready && this.#mayServe()) return true;
    if (!this.#decoder.ready) this.goOn();
    return false;
  }

  /** Must be called when the socket has closed. Ends the timers and reduces the load of the user. */
  closed(): void {
    if (this.#frame_timer !== null) clearTimeout(this.#frame_timer);
    if (this.#room_timer !== null) clearTimeout(this.#room_timer);
    if (this.#drop_timer !== null) clearTimeout(this.#drop_timer);
    this.#requests.clear();
    for (const share of this.#shares) {
      share.rate.leave(this);
      share.not_read.delete(this);
      if (share.reader === this) share.reader = null;
      share.pending_chars -= this.#pending;
      share.waiting_chars -= this.#waiting;
      share.unread_chars -= this.#unread;
    }
    this.#pending = this.#waiting = this.#unread = 0;
    for (const share of this.#shares) readOn(share);
  }

  #outboxLimits(): OutboxLimits {
    const limits = this.#limits;
    return {
      write_ahead_bytes: limits.write_ahead_bytes,
      queue_chars_max: this.#welcomed ? limits.daemon_queue_chars_max : limits.client_queue_chars_max,
      stalled_reader_ms: this.#welcomed ? limits.stalled_daemon_ms : limits.stalled_reader_ms,
    };
  }

  /** Tells the peer why nothing is served, and ends the link (L5). */
  #refuse(text: string): false {
    this.#refused = true;
    this.#handlers.onProblem?.(text, this.peer);
    this.#out.send(encodeFrame("refused", { code: PBSE_PROTOCOL, text }));
    this.#out.end();
    this.#drop_timer ??= setTimeout(() => this.#socket.destroy(), this.#limits.drop_ms_max).unref();
    return false;
  }

  #breakOff(why: string): void {
    if (this.#socket.destroyed) return;
    this.#refused = true;
    this.#handlers.onProblem?.(why, this.peer);
    this.#socket.destroy();
  }

  #take(chunk: string, dispatch: (frame: Frame) => void): void {
    // The text of an ended link is read, so that the end of the peer is noticed, and not kept.
    if (this.#drop_timer !== null) return;
    this.#receive = dispatch;
    this.#decoder.add(chunk);
    this.#countText();
    this.#timeFrame();
    this.goOn();
  }

  /** Called when a frame waits, or when there is room again. Announces the frame, or reads more. */
  goOn(): void {
    if (!this.open || this.#serving) return;
    if (!this.#decoder.ready) return this.#readOn();
    if (!this.#welcomed) this.#socket.pause();
    if (!this.#mayServe()) return;
    if (this.#handlers.onReady === undefined || this.#welcomed) {
      while (this.serveNext());
    } else if (!this.#announced) {
      this.#announced = true;
      this.#handlers.onReady(this);
    }
  }

  #mayServe(): boolean {
    return this.#welcomed || (!this.#held && this.#hasRate() && !this.#isHeldBack());
  }

  #hasRate(): boolean {
    return this.#shares.every(({ rate }) => rate.hasSome(this));
  }

  /** Whether the connection must wait because of its own requests and replies or because of its shares (L2). */
  #isHeldBack(): boolean {
    const limits = this.#limits;
    this.#countUnread();
    const is_over = this.#unread > 0 && this.#shares.some((share) => share.unread_chars > share.limits.unread_chars_max);
    if (this.#unread > limits.unread_reply_chars_max || is_over) {
      // The client must continue to read its replies, or it is given up. Node.js does not report when the last bytes leave the
      // socket, so the link polls.
      this.#out.watch();
      this.#room_timer ??= setTimeout(() => {
        this.#room_timer = null;
        this.goOn();
      }, ROOM_MS).unref();
      return true;
    }
    const { count } = this.#requests;
    return count >= limits.open_requests_max || (count > 0 && this.#shares.some((share) => share.open_chars > share.limits.open_chars_max));
  }

  /** Whether the socket may be read (L3). */
  #mayRead(): boolean {
    if (this.#welcomed || this.#pending === 0) return true;
    const full = this.#shares.filter(
      ({ pending_chars, waiting_chars, limits }) => pending_chars + waiting_chars > limits.pending_chars_max,
    );
    if (full.some(({ waiting_chars }) => waiting_chars > 0)) return false;
    // The connection that is read for its host does not wait for the one that is read for its user, because that one could be waiting for this one.
    const reads_for_host = this.#shares.some(({ of, reader }) => of === "host" && reader === this);
    const needed = reads_for_host ? full.filter(({ of }) => of === "host") : full;
    if (needed.some(({ reader }) => reader !== null && reader !== this)) return false;
    for (const share of needed) share.reader = this;
    return true;
  }

  #readOn(): void {
    const socket = this.#socket;
    if (socket.isPaused() && !this.#mayServe()) return;
    if (!this.#mayRead()) {
      socket.pause();
      for (const { not_read } of this.#shares) not_read.add(this);
    } else if (socket.isPaused()) {
      this.#frame_timer?.refresh();
      socket.resume();
    }
  }

  #countUnread(): void {
    const now = this.unsent_chars;
    for (const share of this.#shares) share.unread_chars += now - this.#unread;
    this.#unread = now;
  }

  #countText(): void {
    const decoder = this.#decoder;
    const is_less = decoder.waiting < this.#waiting;
    for (const share of this.#shares) {
      share.pending_chars += decoder.pending - this.#pending;
      share.waiting_chars += decoder.waiting - this.#waiting;
      if (share.reader === this && decoder.ready) share.reader = null;
    }
    this.#pending = decoder.pending;
    this.#waiting = decoder.waiting;
    if (is_less) for (const share of this.#shares) readOn(share);
  }

  #timeFrame(): void {
    if (this.#frame_timer !== null && this.#pending === 0) {
      clearTimeout(this.#frame_timer);
      this.#frame_timer = null;
    } else if (this.#pending > 0 && this.#frame_timer === null) this.#expectFrame();
  }

  /** Starts the timer for the incomplete frame. A frame that is not read because others before it wait does not count as late. */
  #expectFrame(): void {
    this.#frame_timer = setTimeout(() => {
      this.#frame_timer = null;
      if (this.#socket.isPaused()) this.#expectFrame();
      else this.#breakOff("a frame was not completed in time");
    }, this.#limits.frame_ms_max).unref();
  }
}

/** Keeps the unanswered requests of a connection with the lengths of their texts. Requests with the same id are counted together. */
function openRequests(shares: readonly Share[]) {
  const chars_of = new Map<number, number>();
  let count = 0;
  const forget = (chars: number): void => {
    for (const share of shares) share.open_chars -= chars;
  };
  return {
    get count() {
      return count;
    },
    add(frame: Frame, chars: number): void {
      const id = Number((frame.data as { readonly id?: unknown } | null)?.id);
      count++;
      for (const share of shares) share.open_chars += chars;
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

/** Interval between checks of a connection that waits because of unread replies. */
const ROOM_MS = 50;
