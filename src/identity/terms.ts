// How long things are valid, in seconds. Pure.

const HOUR_S = 3600;
const DAY_S = 24 * HOUR_S;

export const TERMS = Object.freeze({
  /** a certificate of a host */
  certificate_s: 365 * DAY_S,
  /** the certificate of an authority */
  authority_s: 3650 * DAY_S,
  /** certificates begin this long before they are signed, for hosts whose clock is slow */
  skew_s: HOUR_S,
  /** a certificate of a user */
  user_s: 30 * DAY_S,
  /** a token, unless its maker gives another time. token_s_max: the longest time that the maker can give */
  token_s: HOUR_S,
  token_s_max: 30 * DAY_S,
  /** tokens and certificates stay in the ledger, to be listed, for this long after they have expired */
  kept_s: 30 * DAY_S,
});
