// Sends the frames of a batch to moms. The same order to several moms goes to their multicast group once, if the administrator
// has enabled that (docs/multicast.md); all other frames go over the moms' connections.
//
// O1. Frames of one mom keep their order. A mom for which frames wait gets its next frame over its connection.

import type { GroupDesk } from "#protocol/multicast/group-desk.ts";
import { isGroupType } from "#protocol/multicast/stream.ts";
import { nth } from "#support/assert.ts";
import type { MomFrame } from "../engine/batch.ts";
import { type StartFrames, type StartFramesOptions, startFrames } from "./start-frames.ts";

export type MomFrames = { send(frames: readonly MomFrame[]): void };

export function momFrames(group: GroupDesk, options: StartFramesOptions): MomFrames {
  const starts = startFrames({ ...options, link: (number) => counted(group, number, options.link(number)) });
  return {
    send(frames) {
      for (let first = 0; first < frames.length; ) {
        const end = endOfSame(frames, first);
        sendSame(group, starts, frames.slice(first, end));
        first = end;
      }
    },
  };
}

/** Returns the index after the frames that have the same record as the first. */
function endOfSame(frames: readonly MomFrame[], first: number): number {
  const { type, data } = nth(frames, first);
  let end = first + 1;
  while (end < frames.length && frames[end]?.type === type && frames[end]?.data === data) end++;
  return end;
}

function sendSame(group: GroupDesk, starts: StartFrames, frames: readonly MomFrame[]): void {
  const { type, data } = nth(frames, 0);
  if (!isGroupType(type)) return frames.forEach((frame) => starts.send(frame));
  const free = frames.filter(({ link }) => !starts.waits(link)).map(({ link }) => link);
  const left = new Set(group.command(free, type, data));
  const reached = new Set(free.filter((link) => !left.has(link)));
  for (const frame of frames) if (!reached.has(frame.link)) starts.send(frame);
}

type Link = ReturnType<StartFramesOptions["link"]>;

/** Returns the same link with one addition: before it sends a frame, it tells the group desk of the frame. */
function counted(group: GroupDesk, number: number, link: Link): Link {
  if (link === undefined) return undefined;
  return {
    send(type, data) {
      group.passes(number, type);
      link.send(type, data);
    },
    sendText(text) {
      // The only frames that are sent as text are those that start jobs.
      group.passes(number, "mom-start");
      link.sendText(text);
    },
    destroy: () => link.destroy(),
  };
}
