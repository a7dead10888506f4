// The text of a token: `partita1.` and 80 characters of base64url. Pure.
//
// J1. The text names the authority by the SHA-256 fingerprint of its certificate, so that a new host can check the server before it sends anything.
// J2. Each text stands for one value and each value has one text, because 60 bytes fill 80 characters without spare bits.

export type TokenText = {
  /** identifies the token in the ledger: 16 hexadecimal digits */
  readonly id: string;
  /** 40 hexadecimal digits */
  readonly secret: string;
  /** SHA-256 of the authority's certificate (DER): 64 hexadecimal digits */
  readonly fingerprint: string;
};

const PREFIX = "partita1.";
const TEXT = /^partita1\.([A-Za-z0-9_-]{80})$/;
/** number of digits of each part */
const ID = 16;
const SECRET = 40;
const FINGERPRINT = 64;

export function formatToken({ id, secret, fingerprint }: TokenText): string {
  return PREFIX + Buffer.from(id + secret + fingerprint, "hex").toString("base64url");
}

/** Reads a token. Returns null if the text is not a token, for example because its end is missing. */
export function parseToken(text: string): TokenText | null {
  const body = TEXT.exec(text.trim())?.[1];
  if (body === undefined) return null;
  const digits = Buffer.from(body, "base64url").toString("hex");
  return {
    id: digits.slice(0, ID),
    secret: digits.slice(ID, ID + SECRET),
    fingerprint: digits.slice(ID + SECRET, ID + SECRET + FINGERPRINT),
  };
}
