// qsub -X: connects the X clients of a job to the submitter's display. The clients show a cookie that was made for the job;
// it is replaced by the display's real cookie (protocol/terminal/x11.ts X1).

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { hostname } from "node:os";
import type { TerminalChannel } from "#protocol/terminal/channel.ts";
import type { TerminalFrame } from "#protocol/terminal/link.ts";
import { clientSetup, cookieFor, type Display, parseDisplay, X11_PORT } from "#protocol/terminal/x11.ts";
import { X11_CLIENTS_MAX, x11Streams } from "#protocol/terminal/x11-streams.ts";
import type { CommandIo } from "../command.ts";

const COOKIE_BYTES = 16;

export type X11Forwarding = {
  /** what the job is told about the display */
  readonly offer: { readonly cookie: string; readonly screen: number };
  over(channel: TerminalChannel): { take(frame: TerminalFrame): void; drained(): void; close(): void };
};

/** Prepares the forwarding. Returns null if DISPLAY does not name a display. */
export function x11Forwarding(env: CommandIo["env"]): X11Forwarding | null {
  const display = parseDisplay(env["DISPLAY"] ?? "");
  if (display === null) return null;
  const expected = randomBytes(COOKIE_BYTES);
  const real = realCookie(env, display);
  return {
    offer: { cookie: expected.toString("hex"), screen: display.screen },
    over(channel) {
      const streams = x11Streams(channel);
      /** clients that have not shown their cookie yet, with the bytes that they have sent so far */
      const fresh = new Map<number, Buffer>();
      const turnAway = (id: number): void => {
        fresh.delete(id);
        channel.send({ kind: "x-close", id });
      };
      return {
        take(frame) {
          if (frame.kind === "x-open") {
            if (fresh.size + streams.count >= X11_CLIENTS_MAX) return turnAway(frame.id);
            fresh.set(frame.id, Buffer.alloc(0));
            return;
          }
          const before = frame.kind === "x-data" ? fresh.get(frame.id) : undefined;
          if (frame.kind !== "x-data" || before === undefined) {
            if (frame.kind === "x-close") fresh.delete(frame.id);
            return streams.take(frame);
          }
          const said = Buffer.concat([before, frame.bytes]);
          const setup = clientSetup(said, expected, real);
          if (setup === "refused") return turnAway(frame.id);
          if (setup === null) return void fresh.set(frame.id, said);
          fresh.delete(frame.id);
          streams.add(frame.id, dial(display));
          streams.take({ kind: "x-data", id: frame.id, bytes: setup });
        },
        drained: streams.drained,
        close: streams.close,
      };
    },
  };
}

const dial = ({ host, number }: Display): Socket =>
  host === null ? connect(`/tmp/.X11-unix/X${number}`) : connect(X11_PORT + number, host);

function realCookie(env: CommandIo["env"], display: Display): Buffer | null {
  try {
    return cookieFor(readFileSync(env["XAUTHORITY"] ?? `${env["HOME"] ?? ""}/.Xauthority`), display, hostname());
  } catch {
    // There is no cookie: the display may admit its user without one.
    return null;
  }
}
