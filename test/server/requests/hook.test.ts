// qmgr on hooks: list, print, import and export, and permissions (docs/reference/qmgr.md 9; transcript hooks).

import assert from "node:assert/strict";
import { test } from "node:test";
import { ALICE, HOST, harness, logsOf, restart } from "../harness.ts";
import { qmgr, verdict } from "./qmgr.ts";

const REFUSED = `alice@${HOST} is unauthorized to access hooks data from server ${HOST}`;

test("a hook is made, listed, changed, printed and deleted", async () => {
  const h = harness();
  assert.equal(await qmgr(h, "create hook h1"), "");
  assert.equal(await qmgr(h, "set hook h1 event=queuejob"), "");
  assert.equal(
    await qmgr(h, "list hook h1"),
    `Hook h1
    type = site
    enabled = true
    event = queuejob
    user = pbsadmin
    alarm = 30
    order = 1
    debug = false
    fail_action = none

`,
  );
  assert.equal(await qmgr(h, "create hook h2 event='modifyjob,movejob',enabled=true,order=5"), "");
  assert.equal(await qmgr(h, "import hook h2 application/x-python default print(1)"), "");
  assert.equal(await qmgr(h, "import hook h2 application/x-config default site.json"), "");
  assert.equal(
    await qmgr(h, "print hook h2"),
    `#
# Create hooks and set their properties.
#
#
# Create and define hook h2
#
create hook h2
set hook h2 type = site
set hook h2 enabled = true
set hook h2 event = "modifyjob,movejob"
set hook h2 user = pbsadmin
set hook h2 alarm = 30
set hook h2 order = 5
set hook h2 debug = false
set hook h2 fail_action = none
import hook h2 application/x-python base64 -
${btoa("print(1)")}

import hook h2 application/x-config base64 -
${btoa("site.json")}

`,
  );
  assert.equal(await qmgr(h, "list hook h2 order"), "Hook h2\n    order = 5\n\n");
  assert.equal(await qmgr(h, "list pbshook"), "");
  assert.equal(await qmgr(h, "delete hook h2"), "");
  assert.equal(await verdict(h, "list hook h2"), "15136 hook not found");
  assert.deepEqual(logsOf(h, "h1"), [
    `created at request of root@${HOST}`,
    `attributes set:  at request of root@${HOST}`,
    "attributes set: event = queuejob",
  ]);
});

test("refusals have PBS's texts, and qmgr ends with 32", async () => {
  const h = harness();
  await qmgr(h, "create hook h1");
  const TABLE: readonly (readonly [line: string, expected: string])[] = [
    ["create hook h1", "15136 hook name 'h1' already registered, try another name"],
    ["create hook PBSmine", `15136 invalid hook name 'PBSmine': hook names may not begin with "PBS"`],
    ["create pbshook mine", "15136 pbshooks cannot be created"],
    ["delete hook nosuch", "15136 nosuch does not exist!"],
    ["set hook nosuch enabled=f", "15136 nosuch does not exist!"],
    ["set pbshook pbs_cgroups enabled=f", "15136 pbs_cgroups does not exist!"],
    ["set hook h1 event=provision", "15136 the event provision is not supported: vnodes are not provisioned by this release"],
    ["import hook nosuch application/x-python default x", "15136 nosuch does not exist!"],
    [
      "import hook h1 text/html default x",
      "15136 content-type must be application/x-python, application/x-javascript or application/x-config, not text/html",
    ],
    ["import hook h1 application/x-python rot13 x", "15136 content-encoding must be default or base64, not rot13"],
    [
      "import hook h1 application/x-config default x.exe",
      "15136 .exe is no suffix of a hook's configuration file: none, .ini, .json, .py, .txt, .xml",
    ],
    ["export hook h1 application/x-python default", "15136 hook 'h1' has no contents of type application/x-python"],
  ];
  for (const [line, expected] of TABLE) assert.equal(await verdict(h, line), expected, line);
  assert.match(await qmgr(h, "delete hook nosuch"), /\nqmgr: hook error returned from server\n\[32\]\n$/);
  assert.equal(await qmgr(h, "import hook h1 application/x-python default"), "hook import command has no <input-file> argument\n[1]\n");
  assert.equal(await qmgr(h, "import hook h1 application/x-python"), "hook import command has no <content-encoding> argument\n[1]\n");
  assert.equal(await qmgr(h, "import hook h1"), "hook import command has no <content-type> argument\n[1]\n");
});

test("contents are kept byte for byte, say when they replace others, and outlive a restart", async () => {
  const h = harness();
  await qmgr(h, "create hook h1 event=queuejob");
  assert.equal(await qmgr(h, "import hook h1 application/x-python default one"), "");
  assert.equal(await qmgr(h, "import hook h1 application/x-python default two"), "hook 'h1' contents overwritten\n");
  await qmgr(h, "set hook h1 order=7");
  restart(h);
  assert.equal(await qmgr(h, "export hook h1 application/x-python default"), "two");
  assert.equal(await qmgr(h, "list hook h1 order"), "Hook h1\n    order = 7\n\n");
  assert.equal(await qmgr(h, "export hook h1 application/x-config default"), "", "a configuration that is not there is empty");
  assert.doesNotMatch(await qmgr(h, "print hook h1"), /x-config/);
  // A script in the other language replaces it.
  await qmgr(h, "import hook h1 application/x-javascript default three");
  assert.equal(
    await verdict(h, "export hook h1 application/x-python default"),
    "15136 hook 'h1' has no contents of type application/x-python",
  );
});

test("only root on the server host may see or touch hooks", async () => {
  const h = harness({ server: { managers: ["alice@*"] } });
  await qmgr(h, "create hook h1");
  for (const line of [
    "create hook h2",
    "delete hook h1",
    "set hook h1 order=2",
    "unset hook h1 order",
    "import hook h1 application/x-python default x",
    "export hook h1 application/x-python default",
  ])
    assert.equal(await verdict(h, line, ALICE), `15136 ${REFUSED}`, line);
  assert.equal(await qmgr(h, "list hook", ALICE), `${REFUSED}\n`, "as recorded");
  const told = (name: string): string => `qmgr obj=${name} svr=default: ${REFUSED}\nqmgr: hook error returned from server\n[1]\n`;
  assert.equal(await qmgr(h, "list hook h1", ALICE), told("h1"));
  assert.equal(await qmgr(h, "print hook", ALICE), told(""));
});
