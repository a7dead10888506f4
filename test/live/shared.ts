// The folder with recordings, client programs and traces that lies beside the checkout, or where PARTITA_SHARED says.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const SHARED = process.env["PARTITA_SHARED"] ?? join(ROOT, "..", "shared");

/** undefined when the folder is there, else the reason to skip, to be said aloud. */
export function whyNoShared(): string | undefined {
  return existsSync(join(SHARED, "transcripts", "replay")) ? undefined : `no shared folder at ${SHARED}; set PARTITA_SHARED`;
}
