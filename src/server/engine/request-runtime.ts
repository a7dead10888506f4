// What the server knows about requests that are not answered yet. It is lost when the server ends; the clients lose their
// connection then.

import type { Request } from "#protocol/messages.ts";
import type { Job } from "../state/state.ts";
import { type JointAnswers, noJointAnswers } from "./joint-answers.ts";
import type { HookVerdict, Identity, Stream } from "./transaction.ts";

/** Answers from outside of the core that a request needs: records of the history, host names, verdicts of hooks. */
export type Known = {
  readonly jobs: Map<string, Job | null>;
  /** the names of hosts, by the name or address that was looked up; null: unknown */
  readonly hosts: Map<string, string | null>;
  /** verdicts of hooks, by HookAsk.key */
  readonly hooks: Map<string, HookVerdict>;
};
export const nothingKnown = (): Known => ({ jobs: new Map(), hosts: new Map(), hooks: new Map() });
/** Used for a request that has no answers from outside yet. */
export const NOTHING_KNOWN: Known = nothingKnown();
/** A request that waits for an answer from outside of the core. */
export type WaitingRequest = { readonly who: Identity; readonly request: Request; readonly known: Known; readonly stream?: Stream };

export type RequestRuntime = {
  /** requests that wait for an answer from outside of the core, by token */
  readonly waiting: Map<number, WaitingRequest>;
  readonly joint: JointAnswers;
};

export const noRequests = (): RequestRuntime => ({ waiting: new Map(), joint: noJointAnswers() });
