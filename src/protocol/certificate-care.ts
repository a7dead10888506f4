// What a daemon of a host that has joined does for the host's identity: it keeps the certificate renewed, and what the server tells of revoked certificates
// (docs/identity.md).

import { keepRevoked } from "#identity/files/revoked.ts";
import { TERMS } from "#identity/terms.ts";
import { messageOf } from "#support/caught.ts";
import type { AskingHost } from "./host-questions.ts";
import { parseRevoked } from "./schema-join.ts";

const RENEWAL_LOOK_MS = 6 * 3600 * 1000;

/** Renews the certificate when less than a third of its time is left, or when the complex has a new authority; tries again after some hours. */
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

/** Keeps what the server tells of revoked certificates. Returns the serial numbers of all that this host refuses, or none if they cannot be kept. */
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
