// The answer to a request, identified by its number: one reply, preceded by the parts of a long list.

export type OkReply = {
  readonly id: number;
  readonly ok: true;
  readonly value?: unknown;
  /** a warning that the client prints, for example that of 15026 */
  readonly text?: string;
};
export type ErrorReply = { readonly id: number; readonly ok: false; readonly code: number; readonly text: string | null };
export type Reply = OkReply | ErrorReply;
export type PartFrame = { readonly id: number; readonly items: readonly unknown[] };
