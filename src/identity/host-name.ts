// The name of a host in certificates and in the ledger: the node name in lower case. Pure.

/** Short enough for the common name of a certificate (64 characters, RFC 5280 appendix A.1). */
const HOST_NAME = /^[a-z0-9][a-z0-9_.-]{0,62}$/;

/** The canonical form of a name, or null if no host can have that name. */
export function hostName(text: string): string | null {
  const name = text.toLowerCase();
  return HOST_NAME.test(name) ? name : null;
}
