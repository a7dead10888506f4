// Texts that say why a certificate is not accepted, for the administrator of the host that shows or checks it.

import { codeOf } from "#support/caught.ts";

/** Returns why a handshake failed. A text about dates mentions the clocks, which are the usual cause. */
export function handshakeFault(error: Error): string {
  const code = codeOf(error);
  if (code !== "CERT_NOT_YET_VALID" && code !== "CERT_HAS_EXPIRED") return error.message;
  const state = code === "CERT_HAS_EXPIRED" ? "has expired" : "is not valid yet";
  return `its certificate ${state} by the clock of this host: compare the clocks of both hosts`;
}

/** Returns why the server does not accept a certificate that a host has shown. code: the name of the fault in OpenSSL. */
export function refusedCertificate(code: string): string {
  if (code === "CERT_HAS_EXPIRED") return "the certificate has expired by the clock of the server";
  if (code === "CERT_NOT_YET_VALID") return "the certificate is not valid yet by the clock of the server: compare the clocks of both hosts";
  return `the certificate is not one of this complex (${code})`;
}
