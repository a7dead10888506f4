// Sends replies to clients: values, refusals, and lists in parts.
//
// R1. A request is answered once: the code that takes its token answers it, and a token that was taken is not answered again.
// R2. The parts of a reply are sent before the reply itself, in their order. A long list is made into text piece by piece,
//     as fast as the client reads it.

import { encodePartFrame } from "#protocol/wire/frame.ts";
import type { ClientFrame } from "../engine/batch.ts";
import type { Connections } from "./connections.ts";

export type Replies = {
  /** Sends the frames of a committed batch, or a refusal. */
  answer(frames: readonly ClientFrame[]): void;
  /** Calls `then` when the client has received all parts that were sent so far. */
  taken(token: number, then: () => void): void;
  /** Drops the tokens of clients that are gone. */
  forget(tokens: Iterable<number>): void;
};

export function replies(conns: Pick<Connections, "take" | "peek">): Replies {
  /** by token: the sending of parts that a slow client has not received yet */
  const sending = new Map<number, Promise<void>>();

  const sendParts = (token: number, lists: readonly unknown[][]): void => {
    const pending = conns.peek(token);
    if (pending === undefined || lists.length === 0) return;
    const { link } = pending.connection;
    const texts = (items: readonly unknown[]): string[] => items.map((item) => JSON.stringify(item));
    if (lists.length === 1) return link.part(pending.id, texts(lists[0] as unknown[]));
    const frames = function* (): Generator<string> {
      for (const items of lists) yield encodePartFrame(pending.id, texts(items));
    };
    sending.set(
      token,
      link.sendFrames(frames()).catch(() => undefined),
    );
  };

  return {
    answer(frames) {
      const parts = new Map<number, unknown[][]>();
      for (const frame of frames) {
        if (frame.kind === "part") {
          const list = parts.get(frame.token) ?? [];
          parts.set(frame.token, list);
          list.push(frame.items as unknown[]);
          continue;
        }
        sendParts(frame.token, parts.get(frame.token) ?? []);
        parts.delete(frame.token);
        const pending = conns.take(frame.token);
        if (pending === undefined) continue;
        sending.delete(frame.token);
        const { id } = pending;
        if (frame.kind === "error") pending.connection.link.reply({ id, ok: false, code: frame.code, text: frame.text });
        else {
          const { value, text } = frame;
          pending.connection.link.reply({
            id,
            ok: true,
            ...(value === undefined ? {} : { value }),
            ...(text === undefined ? {} : { text }),
          });
        }
      }
      for (const [token, lists] of parts) sendParts(token, lists);
    },

    taken(token, then) {
      const parts = sending.get(token);
      if (parts === undefined) then();
      else void parts.then(then);
    },

    forget(tokens) {
      for (const token of tokens) sending.delete(token);
    },
  };
}
