// Attributes that name a program that root's daemons start, or a file or directory that they read or write, are reserved for
// root; managers and operators are refused.

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { defaultArguments } from "#cli/qsub/submit.ts";
import { readSettings } from "#mom/shell/setup.ts";
import { readDefinitions } from "#mom/shell/vnode-files.ts";
import { mailer } from "#server/shell/mailer.ts";
import { nobody, unprivilegedUser } from "#server/shell/unprivileged.ts";
import { makeConf } from "#support/conf.ts";
import { systemUsers } from "#support/passwd.ts";
import { homeFault } from "#support/trusted-home.ts";
import { ALICE, addJob, harness, outcome, ROOT } from "../harness.ts";
import { session, shown } from "../requests/qmgr.ts";

const REFUSED = "15003 Cannot set attribute, read only or insufficient permission ";
const BAD_VALUE = "15014 Illegal attribute or resource value";
const skip = process.geteuid?.() === 0 ? false : "needs root";

test("a manager who is not root sets no program and no directory of root's daemons", async () => {
  const h = harness();
  await session(h, [
    ["create sched sc1"],
    ["set server managers += alice@*"],
    ["alice: set server mailer = /home/alice/x.sh", REFUSED],
    ["alice: set server mailer += x", REFUSED],
    ["alice: unset server mailer", REFUSED],
    ["alice: set server cred_renew_tool = /home/alice/x.sh", REFUSED],
    ["alice: set sched sc1 sched_priv = /etc/cron.d", REFUSED],
    ["alice: set sched sc1 sched_log = /etc/cron.d", REFUSED],
    ["alice: set sched sc1 sched_user = alice", REFUSED],
    ["alice: create sched sc2 sched_priv = /home/alice/priv", REFUSED],
    ["alice: set server acl_roots += root@*", REFUSED],
    ["alice: set server job_sort_formula = ncpus", "15011 PBS server internal error"],
    // the output of `print server` and `print sched` can be read back
    ["alice: set server mailer = /usr/sbin/sendmail"],
    ["alice: set sched sc1 sched_priv = /home/pbs/sched_priv_sc1"],
    ["alice: create sched sc3 sched_priv = /home/pbs/sched_priv_sc3,sched_log = /home/pbs/sched_logs_sc3"],
    ["set server mailer = /opt/site/mail"],
    ["set sched sc1 sched_user = alice"],
    ["set server mailer = bin/mail", BAD_VALUE],
    ["set server mailer = /opt/../home/alice/x", BAD_VALUE],
  ]);
  assert.equal(shown(h, "server", "", "mailer"), "/opt/site/mail");
  assert.equal(outcome(h, ALICE, { kind: "backup", file: "/home/alice/copy" }), "15007 Unauthorized Request ");
});

test("a job of root is altered by root alone", () => {
  const h = harness({ server: { acl_roots: ["root@*"], managers: ["alice@*"] } });
  const id = addJob(h, { euser: "root" }, ROOT);
  const shell = { kind: "modify-job", job: id, attrs: [{ name: "Shell_Path_List", op: "=", value: "/home/alice/x" }] } as const;
  assert.equal(outcome(h, ALICE, shell), "15007 Unauthorized Request ");
  assert.equal(outcome(h, ROOT, shell), "ok");
});

test("root's qsub takes no options from an attribute that operators may set", async () => {
  const link = { request: assert.fail, close: assert.fail };
  const complex = { uid: () => 0, conf: () => ({ mode: "system" }) };
  assert.equal(await defaultArguments(link as never, complex as never), "");
});

/** A directory of root in /tmp for the duration of a test. */
async function inDirectory(work: (directory: string) => void | Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "partita-roots-"));
  try {
    await work(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

test("the mail program has neither root's rights nor its groups, and must be root's own", { skip }, () =>
  inDirectory(async (directory) => {
    chmodSync(directory, 0o755);
    const out = join(directory, "out");
    mkdirSync(out);
    chmodSync(out, 0o777);
    const program = join(directory, "mail");
    writeFileSync(program, `#!/bin/sh\ncat >/dev/null\n{ id -u; id -g; id -G; } > ${out}/id.new\nmv ${out}/id.new ${out}/id\n`, {
      mode: 0o755,
    });
    const told: string[] = [];
    const identity = nobody(systemUsers());
    const post = mailer({ domain: undefined, identity, problem: (text) => void told.push(text) });
    const mail = { mailer: program, from: "adm", to: ["bob"], to_owner: false, subject: "s", body: "" };
    post.send(mail);
    while (!existsSync(join(out, "id")) && told.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    assert.equal(told.join(), "");
    assert.equal(readFileSync(join(out, "id"), "utf8"), `${identity.uid}\n${identity.gid}\n${identity.gid}\n`);
    chmodSync(program, 0o777);
    for (let n = 0; n < 5000; n++) post.send(mail);
    while (told.length < 5000) await new Promise((resolve) => setTimeout(resolve, 10));
    assert.equal(told[0], `mail "s" failed: ${program} can be written by group or others`);
    const none = mailer({ domain: undefined, identity: "PBS_MAIL_USER of pbs.conf: no user x", problem: (text) => void told.push(text) });
    none.send(mail);
    while (told.length < 5001) await new Promise((resolve) => setTimeout(resolve, 10));
    assert.equal(told.at(-1), 'mail "s" failed: PBS_MAIL_USER of pbs.conf: no user x');
  }),
);

test("PBS_MAIL_USER names a user without root's rights", () => {
  const users = systemUsers();
  assert.deepEqual(unprivilegedUser(users, "PBS_MAIL_USER", undefined), nobody(users));
  assert.notEqual(nobody(users).uid, 0);
  assert.equal(unprivilegedUser(users, "PBS_MAIL_USER", "root"), "PBS_MAIL_USER of pbs.conf: root has root's rights");
  assert.equal(unprivilegedUser(users, "PBS_MAIL_USER", "no_such_user"), "PBS_MAIL_USER of pbs.conf: no user no_such_user");
});

test("root's daemons start only where pbs.conf, PBS_HOME and pbs_environment are root's", { skip }, () =>
  inDirectory((directory) => {
    const home = join(directory, "home");
    mkdirSync(home, { mode: 0o755 });
    const file = join(directory, "pbs.conf");
    writeFileSync(file, "", { mode: 0o644 });
    writeFileSync(join(home, "pbs_environment"), "", { mode: 0o644 });
    const conf = (mode: string) =>
      makeConf(file, `PBS_HOME=${home}\nPBS_EXEC=/opt/pbs\nPBS_SERVER=svr\nPARTITA_MODE=${mode}\n`, {}, { hostname: "svr", uid: 0 });
    assert.equal(homeFault(conf("system")), null);
    for (const [path, mode, text] of [
      [file, 0o664, `pbs.conf is not safe: ${file} can be written by group or others`],
      [home, 0o1777, `PBS_HOME is not safe: ${home} can be written by group or others`],
      [directory, 0o777, `pbs.conf is not safe: ${directory} can be written by group or others`],
      [join(home, "pbs_environment"), 0o666, `PBS_ENVIRONMENT is not safe: ${home}/pbs_environment can be written by group or others`],
    ] as const) {
      chmodSync(path, mode);
      assert.equal(homeFault(conf("system")), text);
      assert.equal(homeFault(conf("user")), null, "user mode is as it was");
      chmodSync(path, 0o755);
    }
  }),
);

test("a mom of root obeys no configuration and no vnode definition that others can change", { skip }, () =>
  inDirectory((directory) => {
    const path = join(directory, "config");
    writeFileSync(path, "$logevent 511\n", { mode: 0o644 });
    assert.equal(readSettings(path, () => assert.fail(), true).logevent, 511);
    chmodSync(path, 0o666);
    assert.throws(() => readSettings(path, () => assert.fail(), true), /config is not safe: .*config can be written by group or others/);
    chmodSync(path, 0o644);
    mkdirSync(join(directory, "kept"));
    chmodSync(join(directory, "kept"), 0o1777);
    writeFileSync(path, `$checkpoint_path ${directory}/kept\n`);
    assert.throws(
      () => readSettings(path, () => assert.fail(), true),
      /\$checkpoint_path is not safe: .*kept can be written by group or others/,
    );
    const definitions = join(directory, "config.d");
    mkdirSync(definitions);
    writeFileSync(join(definitions, "v"), "$configversion 2\nn1: Priority = 1\n");
    assert.deepEqual(readDefinitions(definitions, true).problems, []);
    writeFileSync(join(directory, "theirs"), "$configversion 2\nn2: Priority = 1\n");
    chmodSync(join(directory, "theirs"), 0o666);
    symlinkSync(join(directory, "theirs"), join(definitions, "w"));
    const { defs, problems } = readDefinitions(definitions, true);
    assert.deepEqual(
      [[...defs.keys()], problems],
      [["n1"], [`vnode definition file w: ${directory}/theirs can be written by group or others`]],
    );
  }),
);
