// Mail about real jobs, as the site's mail program receives it.

import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, startComplex, until } from "../complex.ts";

let complex: Complex;
let mails = "";

before(async () => {
  complex = await startComplex({ conf: { PBS_MAIL_HOST_NAME: "site.org" } });
  const site = join(complex.home, "..");
  mails = join(site, "mails");
  mkdirSync(mails);
  // The file of a mail is created in one step.
  writeFileSync(join(site, "sendmail"), `#!/bin/sh\n{ echo "$@"; cat; } > ${mails}/.$$ && mv ${mails}/.$$ ${mails}/$$\n`, { mode: 0o755 });
  complex.qmgr("set server job_history_enable = True", `set server mailer = ${site}/sendmail`, "set server mail_from = pbs");
});
after(() => complex?.stop());

/** The mails about a job, each `arguments|lines of the body`. */
const about = (id: string): string[] =>
  readdirSync(mails)
    .filter((name) => !name.startsWith("."))
    .map((name) => readFileSync(join(mails, name), "utf8"))
    .filter((text) => text.includes(`PBS Job Id: ${id}\n`))
    .sort();

test("begin and end of a job, to whom it names; a limit that was passed, to its owner", async () => {
  const id = complex.submit([
    "-m",
    "abe",
    "-M",
    "bob,carol@far.org",
    "-N",
    "count",
    "-o",
    "/dev/null",
    "-e",
    "/dev/null",
    "--",
    "/bin/true",
  ]);
  await complex.untilJob(id, "F");
  const [begun = "", ended = ""] = await until("two mails", () => about(id).length === 2 && about(id));
  const head = `-f pbs -- bob@site.org carol@far.org\nTo: bob@site.org, carol@far.org\nSubject: PBS JOB ${id}\n\nPBS Job Id: ${id}\nJob Name:   count\n`;
  assert.equal(begun, `${head}Begun execution\n`);
  assert.ok(ended.startsWith(`${head}Execution terminated\nExit_status=0\nresources_used.`), ended);
  const over = complex.submit(["-l", "walltime=1", "-o", "/dev/null", "-e", "/dev/null", "--", "/bin/sleep", "1000"]);
  await complex.untilJob(over, "F");
  const [limit = ""] = await until("a mail", () => about(over).length > 0 && about(over));
  assert.match(limit, /^-f pbs -- \S+@site\.org\n/);
  assert.match(limit, /\nAborted by PBS Server\nJob exceeded resource walltime\nSee job standard error file\n$/);
});

test("of subjobs nothing is told but with j", async () => {
  const quiet = complex.submit(["-m", "e", "-J", "1-2", "-o", "/dev/null", "-e", "/dev/null", "--", "/bin/true"]);
  const loud = complex.submit(["-m", "ej", "-J", "1-2", "-o", "/dev/null", "-e", "/dev/null", "--", "/bin/true"]);
  await complex.untilJob(quiet, "F");
  await complex.untilJob(loud, "F");
  await until("all of the loud one", () =>
    [loud, loud.replace("[]", "[1]"), loud.replace("[]", "[2]")].every((id) => about(id).length === 1),
  );
  await until("the quiet one's own", () => about(quiet).length === 1);
  assert.deepEqual(about(quiet.replace("[]", "[1]")), []);
});
