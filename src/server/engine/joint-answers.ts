// One request, many answers: what is asked of an array or a range of its subjobs is asked of each, and the client is answered once, when all have answered.
//
// I1. A part's token is negative: no client has one. The joint answer is the last refusal, or ok when there was none.

import type { ClientFrame } from "./batch.ts";

export type JointAnswers = {
  /** part -> the request it belongs to */
  readonly parts: Map<number, number>;
  readonly open: Map<number, { left: number; refusal: Extract<ClientFrame, { kind: "error" }> | null }>;
  next_part: number;
};

export const noJointAnswers = (): JointAnswers => ({ parts: new Map(), open: new Map(), next_part: -1 });

/** Tokens for so many parts (at least one) of a request. */
export function splitToken(joint: JointAnswers, token: number, count: number): readonly number[] {
  const parts = Array.from({ length: count }, () => joint.next_part--);
  for (const part of parts) joint.parts.set(part, token);
  joint.open.set(token, { left: count, refusal: null });
  return parts;
}

/** Frames with those of parts taken out, and the joint answers that became complete in their place. */
export function joinAnswers(joint: JointAnswers, frames: readonly ClientFrame[]): ClientFrame[] {
  if (joint.next_part === -1) return frames as ClientFrame[];
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
