// The stream from the server to a mom on another host: frames over the connection, and commands that come by multicast.
// Both ends count what belongs to the stream, so that every command has the same position at both ends.

/** Frames that do not count, because they may overtake commands: keys, and answers to reports. A mom-command states its position. */
const UNCOUNTED: ReadonlySet<string> = new Set(["mom-keys", "mom-group", "mom-heard", "mom-command"]);

/** Whether a frame over the connection takes a position in the stream. */
export const isCounted = (type: string): boolean => !UNCOUNTED.has(type);

/**
 * Frames that may go to the group. Every member can read them. So they must not contain secrets of a run (mom-start) or
 * attributes of jobs (mom-modify).
 */
export const GROUP_TYPES = ["mom-ping", "mom-hooks", "mom-quit", "mom-signal", "mom-terminate", "mom-discard"] as const;
export type GroupType = (typeof GROUP_TYPES)[number];

const group_types: ReadonlySet<string> = new Set(GROUP_TYPES);
export const isGroupType = (type: string): type is GroupType => group_types.has(type);
