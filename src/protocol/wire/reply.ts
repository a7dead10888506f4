// The answer to a request, by its number: one reply, and before it parts of a long list.

export type OkReply = {
  readonly id: number;
  readonly ok: true;
  readonly value?: unknown;
  /** warning printed by the client, e.g. 15026's */
  readonly text?: string;
};
export type ErrorReply = { readonly id: number; readonly ok: false; readonly code: number; readonly text: string | null };
export type Reply = OkReply | ErrorReply;
export type PartFrame = { readonly id: number; readonly items: readonly unknown[] };
