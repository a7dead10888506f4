// The order within a line. A line has a track for each entity. A track has strands, each with jobs whose values differ by fixed
// amounts (ranking.ts), and each strand is sorted.

import { firstPlace } from "#support/search.ts";
import type { JobEntry, JobLine, Strand, Track } from "../shapes/job-line.ts";
import { inStrandBefore } from "./ranking.ts";

/** Yields the jobs of a line, strand after strand. */
export function* jobsOf(line: JobLine): Iterable<JobEntry> {
  for (const { strands } of line.tracks.values()) {
    for (const { members } of strands.values()) for (const entry of members) if (!entry.gone) yield entry;
  }
}

/** Returns the strand with that key. Makes it if there is none. */
export function strandOf(line: JobLine, entity: string, key: string): Strand {
  let track = line.tracks.get(entity);
  if (track === undefined) line.tracks.set(entity, (track = newTrack(line, entity)));
  let strand = track.strands.get(key);
  if (strand === undefined) {
    strand = { track, key, members: [], gone_count: 0, bound: null, settled_until_s: 0 };
    track.strands.set(key, strand);
  }
  return strand;
}

const newTrack = (line: JobLine, entity: string): Track => ({
  line,
  entity,
  strands: new Map(),
  bounds: [],
  fresh: new Set(),
  bounds_until_s: 0,
  version: -1,
});

export function insert(strand: Strand, entry: JobEntry): void {
  const { members } = strand;
  strand.settled_until_s = 0;
  const last = members.at(-1);
  const at =
    last === undefined || inStrandBefore(last, entry) ? members.length : firstPlace(members, (other) => !inStrandBefore(other, entry));
  if (at === members.length) members.push(entry);
  else members.splice(at, 0, entry);
  // The bound of a strand is computed from its first job, so it is computed again only if the new entry is the first.
  if (at > 0) return;
  strand.bound = null;
  strand.track.fresh.add(strand);
}

/** Notes that an entry of the strand has gone. The bound stays valid, because no later job has a higher value. */
export function dropFromStrand(strand: Strand): void {
  const { track, members } = strand;
  strand.gone_count++;
  if (strand.gone_count === members.length) {
    strand.bound = null;
    track.fresh.delete(strand);
    track.strands.delete(strand.key);
    if (track.strands.size === 0) track.line.tracks.delete(track.entity);
  } else if (strand.gone_count > 32 && strand.gone_count * 2 > members.length) {
    strand.members = members.filter((member) => !member.gone);
    strand.gone_count = 0;
  }
}
