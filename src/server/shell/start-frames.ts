// How many jobs go to a mom in one frame: a user decides how big his scripts and environments are, and a frame beyond the limit would end the link, again
// at every try.

import type { MomJob } from "#protocol/mom-link.ts";

/** A frame is full with so much text; a single bigger job has a frame to itself. */
const FRAME_CHARS = 16 * 1024 * 1024;

/** Jobs in lists that fit well into a frame, whatever size of scripts and environments their users chose. */
export function bySize(jobs: readonly MomJob[]): MomJob[][] {
  const lists: MomJob[][] = [];
  let room = 0;
  for (const job of jobs) {
    const size = JSON.stringify(job).length;
    if (size > room) {
      lists.push([]);
      room = FRAME_CHARS;
    }
    room -= size;
    lists.at(-1)?.push(job);
  }
  return lists;
}
