// What a mom makes of the leaders that welcomes name, in a complex with two servers.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { ServerEnd } from "#mom/driver/ports.ts";
import { heedingLeader } from "#mom/shell/known-leader.ts";

const root = mkdtempSync(join(tmpdir(), "partita-leaders-"));
after(() => rmSync(root, { recursive: true }));
const directory = (): string => mkdtempSync(join(root, "mom-"));

function recorder(): { readonly end: ServerEnd; readonly heard: string[] } {
  const heard: string[] = [];
  const end: ServerEnd = {
    opened: () => void heard.push("opened"),
    frame: (type) => void heard.push(type),
    closed: () => void heard.push("closed"),
    absent: () => void heard.push("absent"),
  };
  return { end, heard };
}

test("that nobody listens at the address of one server proves nothing once a leader is known, also after a new start of the mom", () => {
  const at = directory();
  const { end, heard } = recorder();
  const faults: string[] = [];
  const fault = (text: string): void => void faults.push(text);
  const first = heedingLeader(at, end, fault);
  first.absent();
  first.frame("mom-welcome", {});
  first.absent();
  assert.deepEqual(heard.splice(0), ["absent", "mom-welcome", "absent"], "a complex with one server");
  first.frame("mom-welcome", { leader: "7/3" });
  first.absent();
  heedingLeader(at, end, fault).absent();
  assert.deepEqual(heard.splice(0), ["mom-welcome"], "the other server may lead");
  assert.match(faults.join(), /^the complex has two servers: add PBS_PRIMARY and PBS_SECONDARY to pbs\.conf/);
  const third = heedingLeader(at, end, fault);
  third.frame("mom-welcome", {});
  third.absent();
  assert.deepEqual(heard, ["mom-welcome", "absent"], "the complex has one server again");
  assert.equal(existsSync(join(at, "leader")), false);
});
