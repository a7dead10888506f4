import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { userInfo } from "node:os";
import { test } from "node:test";
import { manualClock } from "#support/clock.ts";
import type { UserSource } from "#support/passwd.ts";
import { fileSource, libcSource, parseGroup, parsePasswd, systemUsers } from "#support/passwd.ts";

const PASSWD =
  "root:x:0:0:root:/root:/bin/bash\nalice:x:1001:100:Alice,,,:/home/alice:/bin/zsh\n#c:x:1:1::/:/x\nbroken:x:1\nbad:x:no:1::/:/x\n+::::::\n";
const GROUP = "root:x:0:\nusers:x:100:\nwheel:x:10:bob,alice\nempty:x:11:\nbroken\n";
const files = fileSource(
  () => PASSWD,
  () => GROUP,
);

test("users: passwd and group files, with lines that are none", () => {
  assert.deepEqual(
    parsePasswd(PASSWD).map((user) => user.name),
    ["root", "alice"],
  );
  assert.deepEqual(
    parseGroup(GROUP).map((group) => group.name),
    ["root", "users", "wheel", "empty"],
  );
  const users = systemUsers({ source: files, clock: manualClock(0) });
  const alice = users.userByName("alice");
  assert.deepEqual(alice, { name: "alice", uid: 1001, gid: 100, home: "/home/alice", shell: "/bin/zsh" });
  assert.deepEqual(alice && users.groupsOf(alice), ["users", "wheel"]);
  assert.equal(users.userByUid(4711), null);
});

test("users: answers are kept for a minute, also the negative ones", () => {
  let asked = 0;
  const userByName: UserSource["userByName"] = (name) => {
    asked++;
    return files.userByName(name);
  };
  const source: UserSource = { ...files, userByName };
  const clock = manualClock(0);
  const users = systemUsers({ source, clock });
  for (const name of ["alice", "alice", "nobody-here", "nobody-here"]) users.userByName(name);
  assert.equal(asked, 2);
  clock.advance(60_000);
  users.userByName("alice");
  assert.equal(asked, 3);
});

test("users: names and ids that cannot be are not asked for", () => {
  const refuse = (): never => assert.fail("asked");
  const users = systemUsers({ source: { userByName: refuse, userByUid: refuse, groupByName: refuse, groupByGid: refuse, gidsOf: refuse } });
  for (const name of ["", "a:b", "a/b", "a\0b", "a\nb", "x".repeat(257)]) assert.equal(users.userByName(name), null);
  for (const uid of [-1, 1.5, Number.NaN, 2 ** 32]) assert.equal(users.userByUid(uid), null);
});

test("users: the C library agrees with id(1)", () => {
  const source = libcSource();
  const me = source.userByUid(userInfo().uid);
  assert.equal(me?.name, userInfo().username);
  assert.equal(me?.home, userInfo().homedir);
  assert.deepEqual(source.userByName(me?.name ?? ""), me);
  assert.equal(source.userByName("no-such-user-here"), null);
  const ids = execFileSync("id", ["-G", me?.name ?? ""], { encoding: "utf8" })
    .trim()
    .split(" ")
    .map(Number);
  assert.deepEqual([...source.gidsOf(me as NonNullable<typeof me>)].sort(), ids.sort());
  assert.equal(source.groupByGid(0)?.name, "root");
  assert.equal(source.groupByName("root")?.gid, 0);
});
