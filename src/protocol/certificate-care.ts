// What a daemon on a joined host does for the host's identity: it renews the certificate, and stores the list of revoked
// certificates that the server sends (docs/identity.md).

import { keepRevoked } from "#identity/files/revoked.ts";
import { messageOf } from "#support/caught.ts";
import type { AskingHost } from "./host-questions.ts";
import { parseRevoked } from "./schema-join.ts";

const RENEWAL_LOOK_MS = 6 * 3600 * 1000;

/**
 * Renews the host's certificate, and the one for its users, when less than a third of its time is left, or when the complex has a
 * new authority. After a failure, tries again some hours later.
 */
export function keepRenewed(host: AskingHost, fault: (text: string) => void): void {
  const look = async (): Promise<void> => {
    const { renewDue } = await import("./host-questions.ts");
    await renewDue(host, Date.now() / 1000);
  };
  const tryLook = (): void => void look().catch((error: unknown) => fault(`the certificate is not checked: ${messageOf(error)}`));
  setInterval(tryLook, RENEWAL_LOOK_MS).unref();
  tryLook();
}

/**
 * Stores the list of revoked certificates that the server has sent. Returns the serial numbers of all certificates that this
 * host refuses, or none if the list cannot be stored.
 */
export function keepsRevoked(home: string, data: unknown, fault: (text: string) => void): ReadonlySet<string> {
  try {
    const parsed = parseRevoked(data);
    if (parsed.ok) return new Set(keepRevoked(home, parsed.value.certificates, Math.floor(Date.now() / 1000)).map((each) => each.serial));
    fault(`the server's list of revoked certificates cannot be used: ${parsed.text}`);
  } catch (error) {
    fault(`the list of revoked certificates is not kept: ${messageOf(error)}`);
  }
  return new Set();
}
