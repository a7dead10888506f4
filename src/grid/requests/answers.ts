// Refusals of the grid, with PBS error numbers. Pure.

export type Asker = { readonly name: string; readonly is_manager: boolean };

/** code: a PBS error number. */
export type GridAnswer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly code: number; readonly text: string }
  /** the answer is a list of the jobs of a campaign. The shell makes the list, because the jobs that have ended are read from the history */
  | { readonly ok: true; readonly jobs_of: number; readonly limit: number; readonly offset: number };

export const PBSE_PERM = 15007;
const PBSE_IVALREQ = 15004;
const PBSE_UNKJOBID = 15001;
const PBSE_BADATVAL = 15014;

export type Refused = { readonly ok: false; readonly code: number; readonly text: string };

export const notAllowed = (text: string): Refused => ({ ok: false, code: PBSE_PERM, text });
export const unknownCampaign = (id: number): Refused => ({ ok: false, code: PBSE_UNKJOBID, text: `there is no campaign ${id}` });
export const badValue = (text: string): Refused => ({ ok: false, code: PBSE_BADATVAL, text });
export const wrongState = (text: string): Refused => ({ ok: false, code: PBSE_IVALREQ, text });

/** Returns null if the asker may change something that belongs to a user, else the refusal. what: names the thing in the refusal. */
export const mayChange = ({ name, is_manager }: Asker, user: string, what: string): Refused | null =>
  is_manager || name === user ? null : notAllowed(`${what} belongs to another user`);
