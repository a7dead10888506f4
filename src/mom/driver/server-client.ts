// The mom's link to its server: turns frames into events. Commands may also come by multicast (#protocol/multicast); each is
// handled at its position among the frames.

import type { ServerToMom } from "#protocol/mom-link.ts";
import { GroupSeat } from "#protocol/multicast/group-seat.ts";
import { isCounted } from "#protocol/multicast/stream.ts";
import { type FrameOf, parseFrame } from "#protocol/schema-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { MomEvent } from "../run/event.ts";
import type { GroupPort, HostPort, ServerLink, ServerPort } from "./ports.ts";

export type ServerTools = {
  readonly happen: (event: MomEvent) => void;
  readonly ownerOf: HostPort["ownerOf"];
  readonly note: (text: string, event?: number) => void;
  /** called when a frame has arrived. Returns false if the frame must be ignored (stall.ts) */
  readonly isInTime: () => boolean;
  readonly pinged: (data: ServerToMom["mom-ping"]) => void;
  /** called with the keys for reports, and with the answers to those that went over the connection */
  readonly keys: (data: ServerToMom["mom-keys"]) => void;
  readonly heard: (data: ServerToMom["mom-heard"]) => void;
  /** called before the event of a welcome, with the grace in it */
  readonly welcomed: (grace: ServerToMom["mom-welcome"]["grace"]) => void;
  /** called when no server runs */
  readonly absent: () => void;
  /** null: the server is on this host, and sends no commands by multicast */
  readonly group: GroupPort | null;
  /** $multicast_interface */
  readonly net: () => string | null;
  /** sends an acknowledgement within spread_ms */
  readonly acknowledge: (position: number, spread_ms: number) => void;
};

/** Turns frames of the server into events. After a frame that cannot be read, the connection is closed and a new one is made. */
export class ServerClient {
  readonly #tools: ServerTools;
  readonly #link: ServerLink;
  readonly #seat: GroupSeat | null;
  /** whether arriving frames are ignored, because the connection is being closed */
  #is_deaf = false;

  constructor(port: ServerPort, tools: ServerTools) {
    this.#tools = tools;
    this.#seat = tools.group === null ? null : this.#takeSeat(tools.group);
    this.#link = port.dial({
      opened: () => this.#opened(),
      frame: (type, data) => this.#hear(type, data),
      closed: (why) => this.#closed(why),
      absent: () => tools.absent(),
    });
  }

  send(frame: FrameOf<"mom-to-server">): void {
    this.#link.send(frame);
  }

  /** Closes the connection and makes a new one. Frames not read yet are dropped. */
  startOver(): void {
    if (this.#is_deaf || !this.#link.connected) return;
    this.#is_deaf = true;
    this.#link.reconnect();
  }

  get connected(): boolean {
    return this.#link.connected;
  }

  close(): void {
    this.#seat?.reset();
    this.#link.close();
  }

  #takeSeat(port: GroupPort): GroupSeat {
    const { note, acknowledge } = this.#tools;
    const heard = (bytes: Uint8Array): void => {
      if (!this.#is_deaf && this.#link.connected && this.#tools.isInTime()) this.#seat?.datagram(bytes);
    };
    const listen = port.open(heard);
    return new GroupSeat({
      cipher: port.cipher,
      verify: port.verify,
      now_ms: port.now_ms,
      listen: (group) => listen(group, this.#tools.net()),
      carryOut: (type, data) => this.#parse(type, data),
      acknowledge,
      note: (text) => note(text, LOG_EVENT.ERROR),
    });
  }

  #opened(): void {
    this.#is_deaf = false;
    this.#seat?.reset();
    this.#tools.note("connected to the server");
    this.#tools.happen({ kind: "connected" });
  }

  #closed(why: string): void {
    this.#seat?.reset();
    this.#tools.note(`connection to the server lost: ${why}`);
    this.#tools.happen({ kind: "disconnected" });
  }

  #hear(type: string, data: unknown): void {
    const { note, isInTime } = this.#tools;
    if (this.#is_deaf || !isInTime()) return;
    if (type === "refused") return note(`the server refuses the connection: ${JSON.stringify(data)}`, LOG_EVENT.ERROR);
    if (this.#seat !== null && isCounted(type)) this.#seat.counted(() => this.#parse(type, data));
    else this.#parse(type, data);
  }

  #parse(type: string, data: unknown): void {
    const { note } = this.#tools;
    const parsed = parseFrame("server-to-mom", type, data);
    if (parsed.ok) return this.#receive(parsed.frame);
    note(`the server sent what is not a message: ${parsed.text}`, LOG_EVENT.ERROR);
    this.startOver();
  }

  #receive(frame: FrameOf<"server-to-mom">): void {
    const { happen, ownerOf, note, pinged, keys, heard, welcomed } = this.#tools;
    switch (frame.type) {
      case "mom-welcome":
        welcomed(frame.data.grace);
        return happen({ kind: "welcome", data: frame.data });
      case "mom-refused":
        return note(`the server refuses this mom: ${frame.data.text} (${frame.data.code})`, LOG_EVENT.ERROR);
      case "mom-start":
        for (const job of frame.data.jobs) happen({ kind: "start", job, owner: ownerOf(job) });
        return happen({ kind: "starts-read", runs: frame.data.jobs.map(({ id, run_count }) => ({ job: id, run_count })) });
      case "mom-confirmed":
        return happen({ kind: "confirmed", runs: frame.data.runs });
      case "mom-ping":
        return pinged(frame.data);
      case "mom-keys":
        return keys(frame.data);
      case "mom-heard":
        return heard(frame.data);
      case "mom-group":
        return this.#seat?.take(frame.data);
      case "mom-command":
        if (this.#seat?.copy(frame.data) === true) return;
        note("the server sent a command out of its position", LOG_EVENT.ERROR);
        return this.startOver();
      case "mom-signal":
        return happen({ kind: "signal", data: frame.data });
      case "mom-terminate":
        return happen({ kind: "terminate", data: frame.data });
      case "mom-modify":
        return happen({ kind: "modify", data: frame.data });
      case "mom-sisters":
        return happen({ kind: "sisters", data: frame.data });
      case "mom-message":
        return happen({ kind: "message", data: frame.data });
      case "mom-obit-ack":
        return happen({ kind: "acknowledged", data: frame.data });
      case "mom-discard":
        return happen({ kind: "discard", job: frame.data.job });
      case "mom-hooks":
        return happen({ kind: "hooks", hooks: frame.data, from: "server" });
      case "mom-quit":
        return happen({ kind: "stop", manner: "leave" });
      default: {
        const unreachable: never = frame;
        throw new Error(`frame ${JSON.stringify(unreachable)}`);
      }
    }
  }
}
