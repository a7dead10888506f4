// The folder with recordings, client programs and traces: beside the checkout, or at PARTITA_SHARED.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const SHARED = process.env["PARTITA_SHARED"] ?? join(ROOT, "..", "shared");

/** undefined if the folder exists, otherwise the reason for skipping, which the test prints. */
export function whyNoShared(): string | undefined {
  return existsSync(join(SHARED, "transcripts", "replay")) ? undefined : `no shared folder at ${SHARED}; set PARTITA_SHARED`;
}
