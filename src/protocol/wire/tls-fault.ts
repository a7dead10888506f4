// Why a handshake failed, in words for the administrator of the dialling host.

import { codeOf } from "#support/caught.ts";

/** Faults of dates name the clocks, which are their usual cause. */
export function handshakeFault(error: Error): string {
  const code = codeOf(error);
  if (code !== "CERT_NOT_YET_VALID" && code !== "CERT_HAS_EXPIRED") return error.message;
  const state = code === "CERT_HAS_EXPIRED" ? "has expired" : "is not valid yet";
  return `its certificate ${state} by the clock of this host: compare the clocks of both hosts`;
}
