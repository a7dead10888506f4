// The name of a host in certificates and in the ledger: the node name in lower case. Pure.

/** Short enough for the common name of a certificate (64 characters, RFC 5280 appendix A.1). */
const HOST_NAME = /^[a-z0-9][a-z0-9_.-]{0,62}$/;

/** The canonical form of a name, or null if no host can have that name. */
export function hostName(text: string): string | null {
  const name = text.toLowerCase();
  return HOST_NAME.test(name) ? name : null;
}

/** Whether a name that an administrator has given means that host: it is the host's name, with or without a domain. host: in canonical form. */
export function isHostNamed(host: string, name: string): boolean {
  const asked = hostName(name);
  if (asked === null) return false;
  const is_address = /^[0-9.]+$/.test(asked);
  return asked === host || (!is_address && asked.split(".")[0] === host);
}

/**
 * Whether two names can mean the same host: they are equal, or one is the other without its domain. Access lists treat such
 * names as equal.
 */
export const mayBeOneHost = (a: string, b: string): boolean => a === b || a.startsWith(`${b}.`) || b.startsWith(`${a}.`);
