import assert from "node:assert/strict";
import { test } from "node:test";
import { systemUsers } from "#support/passwd.ts";
import { until } from "../complex.ts";
import { hookTests } from "./hook-cases.ts";

const USER = "pbsuser1";

hookTests("system", ({ complex, submit, withHook }) => {
  test("a hook of a host runs as root, with user=pbsuser as the job's owner, in JavaScript as nobody with nothing", async () => {
    const told = (name: string, text: string) => until(text, () => complex().log("mom_logs").includes(`;Hook;${name};${text}\n`));
    const python = 'import os, pbs\npbs.logmsg(4, "uid %d gid %d" % (os.getuid(), os.getgid()))\n';
    const owner = systemUsers().userByName(USER);
    await withHook("execjob_begin", "python", python, "", async (name) => {
      await complex().untilJob(submit("--", "/bin/true"), "F");
      await told(name, "uid 0 gid 0");
    });
    await withHook("execjob_begin", "python", python, "user=pbsuser", async (name) => {
      await complex().untilJob(submit("--", "/bin/true"), "F");
      await told(name, `uid ${owner?.uid} gid ${owner?.gid}`);
    });
    const javascript = "pbs.logmsg(4, [typeof process, typeof require, typeof fetch].join());\n";
    await withHook("execjob_begin", "javascript", javascript, "", async (name) => {
      await complex().untilJob(submit("--", "/bin/true"), "F");
      await told(name, "undefined,undefined,undefined");
    });
  });

  test("who is not root may not make hooks", () => {
    const refused = complex().run("qmgr", ["-c", "create hook mine event=queuejob"], { as: USER });
    assert.notEqual(refused.status, 0);
    assert.match(refused.stderr, /pbsuser1@\S+ is unauthorized to access hooks data from server/);
  });
});
