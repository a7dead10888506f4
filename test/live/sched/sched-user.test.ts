// sched_user in system mode: a scheduler runs as the given user, also if the user changes while it runs; directories that
// belong to another user are reported.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { systemUsers } from "#support/passwd.ts";
import { type Complex, startComplex, until } from "../complex.ts";

const [USER, OTHER] = ["nobody", "daemon"];
const user = systemUsers().userByName(USER as string);
const other = systemUsers().userByName(OTHER as string);
const skip =
  process.getuid?.() !== 0
    ? "needs root: sched_user is obeyed in system mode"
    : user === null || other === null
      ? "needs the users nobody and daemon"
      : false;

let complex: Complex | undefined;
after(async () => {
  await complex?.stop();
});

test("another sched_user starts the scheduler anew as that user; directories of somebody else's are a fault until they are right", {
  skip,
}, async () => {
  const here = (complex = await startComplex({ mode: "system" }));
  const listed = (name: string): string | undefined => new RegExp(`${name} = (.*)`).exec(here.qmgr("list sched s1"))?.[1];
  const uid = (): number | null => {
    const pid = here.schedPid("s1");
    return pid === null ? null : Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  };
  const idleAs = (id: number | undefined) => until(`idle as ${id}`, () => listed("state") === "idle" && uid() === id);
  here.qmgr("create sched s1 partition=p1", "set sched s1 scheduling=True");
  await idleAs(0);
  here.qmgr(`set sched s1 sched_user=${USER}`);
  await idleAs(user?.uid);
  assert.equal(listed("comment"), undefined);
  here.qmgr(`set sched s1 sched_user=${OTHER}`);
  await until("the fault", () => listed("scheduling") === "False");
  assert.match(
    listed("comment") ?? "",
    /^(Unable to change the sched_log directory|PBS failed validation checks for sched_priv directory)$/,
  );
  assert.match(here.log("server_logs"), /;Sched;s1;scheduler is not started: .* belongs to another user/);
  await until("it is down", () => listed("state") === "down");
  here.qmgr(`set sched s1 sched_user=${USER}`, "set sched s1 scheduling=True");
  await idleAs(user?.uid);
  await until("the comment has gone", () => listed("comment") === undefined);
});
