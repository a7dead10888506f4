// The mom's link to its server: frames to events.

import type { ServerToMom } from "#protocol/mom-link.ts";
import { frameTypes, parseFrame } from "#protocol/schema-link.ts";
import { connectLink, type DaemonLink } from "#protocol/wire/ipc-transport.ts";
import { serverSocketPath } from "#protocol/wire/socket-path.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { OwnerOf } from "../host/owners.ts";
import type { MomEvent } from "../run/event.ts";

export type ServerTools = {
  readonly happen: (event: MomEvent) => void;
  readonly ownerOf: OwnerOf;
  readonly note: (text: string, event?: number) => void;
  /** a frame has come; false: it must be ignored (stall.ts) */
  readonly isInTime: () => boolean;
  readonly pinged: (data: ServerToMom["mom-ping"]) => void;
};

/** The mom's link to its server. */
export type ServerLink = {
  readonly link: DaemonLink;
  /** Closes the connection and makes a new one; unread frames are dropped. */
  startOver(): void;
};

/** home: the server's PBS_HOME. Turns frames of the server into events. An unreadable frame closes the connection, and a new one is made. */
export function dialServer(home: string, { happen, ownerOf, note, isInTime, pinged }: ServerTools): ServerLink {
  let open: DaemonLink | null = null;
  /** later frames belong to a connection that is given up */
  let deaf = false;
  const receive = (type: string, data: unknown): void => {
    const parsed = parseFrame("server-to-mom", type, data);
    if (!parsed.ok) {
      note(`the server sent what is not a message: ${parsed.text}`, LOG_EVENT.ERROR);
      open?.reconnect();
      return;
    }
    const { frame } = parsed;
    switch (frame.type) {
      case "mom-welcome":
        return happen({ kind: "welcome", data: frame.data });
      case "mom-refused":
        note(`the server refuses this mom: ${frame.data.text} (${frame.data.code})`, LOG_EVENT.ERROR);
        return;
      case "mom-start":
        for (const job of frame.data.jobs) happen({ kind: "start", job, owner: ownerOf(job) });
        return happen({ kind: "starts-read", runs: frame.data.jobs.map(({ id, run_count }) => ({ job: id, run_count })) });
      case "mom-ping":
        return pinged(frame.data);
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
  };
  const dialled = connectLink({
    path: serverSocketPath(home),
    types: frameTypes("server-to-mom"),
    onOpen: (link) => {
      open = link;
      deaf = false;
      note("connected to the server");
      happen({ kind: "connected" });
    },
    onFrame: (type, data) => {
      if (deaf || !isInTime()) return;
      if (type === "refused") note(`the server refuses the connection: ${JSON.stringify(data)}`, LOG_EVENT.ERROR);
      else receive(type, data);
    },
    onClose: (why) => {
      note(`connection to the server lost: ${why}`);
      happen({ kind: "disconnected" });
    },
  });
  return {
    link: dialled,
    startOver() {
      if (deaf || !dialled.connected) return;
      deaf = true;
      dialled.reconnect();
    },
  };
}
