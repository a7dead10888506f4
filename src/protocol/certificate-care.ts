// What a daemon on a joined host does for the host's identity: it renews the certificate, and stores the list of revoked
// certificates that the server sends (docs/identity.md).

import { keepRevoked } from "#identity/files/revoked.ts";
import { TERMS } from "#identity/terms.ts";
import { messageOf } from "#support/caught.ts";
import type { AskingHost } from "./host-questions.ts";
import { parseRevoked } from "./schema-join.ts";

const RENEWAL_LOOK_MS = 6 * 3600 * 1000;

/**
 * Renews the certificate when less than a third of its time is left, or when the complex has a new authority. After a
 * failure, tries again some hours later.
 */
export function keepRenewed(host: AskingHost, fault: (text: string) => void): void {
  const look = async (): Promise<void> => {
    const { checkCertificate, renewCertificate } = await import("./host-questions.ts");
    const { until_s, current } = await checkCertificate(host);
    if (!current || until_s - Date.now() / 1000 < TERMS.certificate_s / 3) await renewCertificate(host);
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
