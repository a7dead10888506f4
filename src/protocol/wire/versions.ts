// Versions of the protocol between the programs of a complex (docs/upgrade.md). Pure.
//
// V1. The first frame of each end says which versions this end speaks, beside type and data: {"protocol":[1,2],"type":...}. The form
//     of this member and of the frame `refused` is the same in all versions. An end that says nothing speaks version 1.
// V2. Both ends use the newest version that both speak. If there is none, each end says so in its log, and the connection ends.
// V3. Within a version, daemons may add members to their frames that the other end can ignore. Everything else needs a new version. A
//     request of a client with an unknown member is refused, because a command must not do half of what its user wants.

import { PARTITA_VERSION } from "#support/version.ts";
import type { Frame } from "./frame.ts";

/** The code of the frame `refused` if there is no common version. */
export const PBSE_PROTOCOL = 15031;

export type Versions = { readonly oldest: number; readonly newest: number };

/**
 * The versions that this program speaks. 1: members that are unknown are refused by daemons, and no end says its versions. 2: members
 * that are unknown are ignored by daemons, and each end says its versions. A release speaks the versions of the release before.
 */
export const SPOKEN: Versions = Object.freeze({ oldest: 1, newest: 2 });

/** The versions of a peer that does not say its versions. */
const UNSAID: Versions = { oldest: 1, newest: 1 };

const VERSION_MAX = 1_000_000;

/** What the two ends of a connection say about versions. */
export type VersionTalk = {
  /** Returns the text of a frame as it must be sent: the first frame says the versions of this end. */
  outgoing(text: string): string;
  /** Looks at a frame of the other end. Returns why the ends cannot talk, in words for both logs; null: they can. */
  incoming(frame: Frame): string | null;
};

/** reserved: this end says its versions only after the other end has said its own, because programs of version 1 may read the text of frames. */
export function versionTalk(options: { readonly own?: Versions; readonly reserved?: boolean } = {}): VersionTalk {
  const own = options.own ?? SPOKEN;
  let is_said = false;
  let is_heard = false;
  let may_say = options.reserved !== true;
  return {
    outgoing(text) {
      if (is_said || !may_say) return text;
      is_said = true;
      return `{"protocol":[${own.oldest},${own.newest}],${text.slice(1)}`;
    },
    incoming(frame) {
      // With `refused` the other end has decided already, and says why.
      if (is_heard || frame.type === "refused") return null;
      is_heard = true;
      if (frame.protocol === undefined) return disagreement(own, UNSAID);
      may_say = true;
      const theirs = versionsIn(frame.protocol);
      return theirs === null ? "the other program says its protocol versions in a form that is not understood" : disagreement(own, theirs);
    },
  };
}

/** Returns the newest version that both speak; null: there is none. */
export function commonVersion(own: Versions, theirs: Versions): number | null {
  const newest = Math.min(own.newest, theirs.newest);
  return newest >= own.oldest && newest >= theirs.oldest ? newest : null;
}

function disagreement(own: Versions, theirs: Versions): string | null {
  if (commonVersion(own, theirs) !== null) return null;
  const here = `partita ${PARTITA_VERSION}`;
  const older = theirs.newest < own.oldest ? "the other program" : here;
  return `no common protocol version: ${here} speaks ${textOf(own)}, the other program speaks ${textOf(theirs)}; upgrade ${older}`;
}

const textOf = ({ oldest, newest }: Versions): string =>
  oldest === newest ? `protocol version ${newest}` : `protocol versions ${oldest} to ${newest}`;

function versionsIn(said: unknown): Versions | null {
  if (!Array.isArray(said) || said.length < 2) return null;
  const [oldest, newest] = said as readonly unknown[];
  return isVersion(oldest) && isVersion(newest) && oldest <= newest ? { oldest, newest } : null;
}

const isVersion = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= VERSION_MAX;
