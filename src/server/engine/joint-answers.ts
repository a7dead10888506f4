// Joins several answers to one request. A request about an array or a range of subjobs is split into parts, one for each
// subjob. The client is answered once, when all parts have been answered.
//
// I1. The token of a part is negative; no client has such a token. The joint answer is the last refusal, or ok if there was none.

import type { ClientFrame } from "./batch.ts";

export type JointAnswers = {
  /** token of a part -> token of the request that it belongs to */
  readonly parts: Map<number, number>;
  /** by token of the request: how many answers are missing, and the last refusal */
  readonly open: Map<number, { left: number; refusal: Extract<ClientFrame, { kind: "error" }> | null }>;
  /** the token of the last part; 0: no request was split */
  last_part: number;
};

export const noJointAnswers = (): JointAnswers => ({ parts: new Map(), open: new Map(), last_part: 0 });

/** Splits a request into this number of parts (at least one) and returns their tokens. */
export function splitToken(joint: JointAnswers, token: number, count: number): readonly number[] {
  const parts = Array.from({ length: count }, () => --joint.last_part);
  for (const part of parts) joint.parts.set(part, token);
  joint.open.set(token, { left: count, refusal: null });
  return parts;
}

/** Takes the answers of parts out of the frames, and adds the joint answers that are now complete. */
export function joinAnswers(joint: JointAnswers, frames: readonly ClientFrame[]): ClientFrame[] {
  return frames.flatMap((frame) => (frame.token < 0 ? joinOne(joint, frame) : [frame]));
}

function joinOne(joint: JointAnswers, frame: ClientFrame): ClientFrame[] {
  const token = joint.parts.get(frame.token);
  const entry = token === undefined ? undefined : joint.open.get(token);
  if (token === undefined || entry === undefined || frame.kind === "part") return [];
  joint.parts.delete(frame.token);
  entry.left--;
  if (frame.kind === "error") entry.refusal = { ...frame, token };
  if (entry.left > 0) return [];
  joint.open.delete(token);
  return [entry.refusal ?? { kind: "ok", token }];
}
