// The server's knowledge about requests that are not answered yet. It is lost when the server ends; clients lose their connection.

import type { Request } from "#protocol/messages.ts";
import type { Job } from "../state/state.ts";
import { type JointAnswers, noJointAnswers } from "./joint-answers.ts";
import type { HookVerdict, Identity, Stream } from "./transaction.ts";

/** Answers from outside of the core to a request's questions. */
export type Known = {
  readonly jobs: Map<string, Job | null>;
  readonly hosts: Map<string, boolean>;
  /** by key of the question */
  readonly hooks: Map<string, HookVerdict>;
};
export const nothingKnown = (): Known => ({ jobs: new Map(), hosts: new Map(), hooks: new Map() });
/** The answers of a request that has not asked yet. */
export const NOTHING_KNOWN: Known = nothingKnown();
/** A request that waits for such an answer. */
export type WaitingRequest = { readonly who: Identity; readonly request: Request; readonly known: Known; readonly stream?: Stream };

export type RequestRuntime = {
  /** requests that wait for an answer from outside of the core, by token */
  readonly waiting: Map<number, WaitingRequest>;
  readonly joint: JointAnswers;
};

export const noRequests = (): RequestRuntime => ({ waiting: new Map(), joint: noJointAnswers() });
