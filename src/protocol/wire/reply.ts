// The reply to a request, identified by the request's number. Each request has one reply; the items of a long list precede
// it in `part` frames.

export type OkReply = {
  readonly id: number;
  readonly ok: true;
  readonly value?: unknown;
  /** a warning that the client prints, for example for code 15026 */
  readonly text?: string;
};
export type ErrorReply = { readonly id: number; readonly ok: false; readonly code: number; readonly text: string | null };
export type Reply = OkReply | ErrorReply;
export type PartFrame = { readonly id: number; readonly items: readonly unknown[] };
