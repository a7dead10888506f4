// Packages without a network: the error appears at once and names the remedy, instead of npm's own message after minutes.

import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { networkFault, withoutNetwork } from "../../scripts/lib/packages.mjs";

/** A stand-in for npm that prints a text and ends with a status. */
async function faultOf(status: number, text: string): Promise<string | null> {
  const folder = mkdtempSync(join(tmpdir(), "partita-npm-"));
  try {
    const program = join(folder, "npm");
    writeFileSync(program, `#!/bin/sh\nif [ "$1" != ping ]; then exit 99; fi\nprintf '%s\\n' "${text}" >&2\nexit ${status}\n`);
    chmodSync(program, 0o755);
    return await networkFault({ program, args: [], env: process.env });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("packages: no network is known by npm's error code; a registry that answers anything is there", async () => {
  assert.equal(await faultOf(0, "npm notice PONG 3ms"), null);
  assert.equal(await faultOf(1, "npm error code ENOTFOUND"), "ENOTFOUND");
  assert.equal(await faultOf(1, "npm ERR! code EAI_AGAIN"), "EAI_AGAIN");
  assert.equal(await faultOf(1, "npm error code E404"), null);
  assert.match(
    withoutNetwork("ENOTFOUND"),
    /does not reach its registry \(ENOTFOUND\).*\nConnect this machine .*proxy.*\nOr copy node_modules/,
  );
});
