// A connection between processes of the mom. It carries typed messages as frames; many of them leave in one write.

import type { Duplex, Readable, Writable } from "node:stream";
import { encodeFrame, frameDecoder } from "#protocol/wire/frame.ts";
import { LIMITS } from "#protocol/wire/limits.ts";
import type { VersionTalk } from "#protocol/wire/versions.ts";
import { nameOf } from "#support/caught.ts";

type Messages = { readonly [type: string]: unknown };

export type Link<Out extends Messages> = {
  send<T extends keyof Out & string>(type: T, data: Out[T]): void;
  /** Length of what was sent and has not left this process. */
  readonly unsent: number;
  /** Sends nothing more. The link closes when the peer has ended. */
  finish(): void;
  close(): void;
};

export type LinkHandlers<In extends Messages> = { readonly [T in keyof In]: (data: In[T]) => void };

/**
 * Opens a link over streams. handlers: a function for each type of message that is accepted. onClose: called once when the link has ended, for any reason.
 * frame_chars_max: length of the longest frame that is accepted. versions: the two ends may be of different releases, and say their versions.
 */
export function frameLink<In extends Messages, Out extends Messages>(
  streams: Duplex | { readonly input: Readable; readonly output: Writable },
  handlers: LinkHandlers<In>,
  onClose: (error: Error | null) => void,
  frame_chars_max = LIMITS.daemon_frame_chars_max,
  versions: VersionTalk | null = null,
): Link<Out> {
  const { input, output } = "input" in streams ? streams : { input: streams, output: streams };
  const decoder = frameDecoder(frame_chars_max, new Set(Object.keys(handlers)));
  let waiting: string[] = [];
  let waiting_chars = 0;
  let open = true;
  const end = (error: Error | null): void => {
    if (!open) return;
    open = false;
    input.destroy();
    output.destroy();
    onClose(error);
  };
  const flush = (): void => {
    const text = waiting.join("");
    waiting = [];
    waiting_chars = 0;
    if (open) output.write(text);
  };
  input.setEncoding("utf8");
  input.on("data", (chunk: string) => {
    try {
      decoder.push(chunk, (frame) => {
        const strange = versions?.incoming(frame) ?? null;
        if (strange !== null) end(new Error(strange));
        if (open) handlers[frame.type]?.(frame.data as In[string]);
      });
    } catch (error) {
      if (nameOf(error) !== "FrameError") throw error;
      end(error as Error);
    }
  });
  input.on("error", end);
  output.on("error", end);
  input.on("close", () => end(null));
  input.on("end", () => end(null));
  return {
    send(type, data) {
      if (!open) return;
      if (waiting.length === 0) queueMicrotask(flush);
      const frame = encodeFrame(type, data);
      const text = versions?.outgoing(frame) ?? frame;
      waiting_chars += text.length;
      waiting.push(text);
    },
    get unsent() {
      return waiting_chars + output.writableLength;
    },
    finish: () => {
      if (waiting.length > 0) flush();
      output.end();
    },
    close: () => {
      if (waiting.length > 0) flush();
      output.end();
      end(null);
    },
  };
}
