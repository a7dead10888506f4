// Mail about jobs: recipients and texts.

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Mail } from "#server/engine/mail.ts";
import { addressesOf, mailer } from "#server/shell/mailer.ts";
import type { Attrs } from "#server/state/state.ts";
import { ALICE, addHost, addJob, askOk, type Harness, harness, mom, obit, ROOT, runOn } from "../harness.ts";

const mails = (h: Harness): readonly Mail[] => h.actions.flatMap((action) => (action.kind === "send-mail" ? [action.mail] : []));
/** The first word of each mail's subject: Begun, Execution, Aborted. */
const kinds = (h: Harness): string =>
  mails(h)
    .map(({ body }) => body.split("\n")[2]?.split(" ")[0])
    .join(" ");

function ran(attrs: Attrs, end: "ends" | "deleted" | "limit" | "undelivered"): Harness {
  const h = harness();
  const link = addHost(h, "n1");
  const id = addJob(h, attrs);
  runOn(h, id, "n1", link);
  mom(h, link, "mom-started", { job: id, run_count: 1, session_id: 5, jobdir: "/home/alice" });
  if (end === "deleted") askOk(h, ALICE, { kind: "delete-job", job: id });
  if (end === "undelivered")
    mom(h, link, "mom-obit", { job: id, run_count: 1, exit_status: 0, used: {}, stageout_status: 0, message: "no space" });
  else obit(h, link, id, end === "limit" ? -29 : end === "deleted" ? 271 : 0);
  return h;
}

test("-m says who hears of what: a when nothing is said, n nothing at all", () => {
  const rows: readonly (readonly [points: string | undefined, end: Parameters<typeof ran>[1], heard: string])[] = [
    [undefined, "ends", ""],
    ["a", "ends", ""],
    ["b", "ends", "Begun"],
    ["e", "ends", "Execution"],
    ["abe", "ends", "Begun Execution"],
    ["n", "ends", ""],
    [undefined, "limit", "Aborted"],
    ["abe", "limit", "Begun Aborted Execution"],
    ["n", "limit", ""],
    ["b", "limit", "Begun"],
    [undefined, "undelivered", "Post"],
    ["be", "undelivered", "Begun Post Execution"],
    ["n", "undelivered", ""],
  ];
  for (const [Mail_Points, end, heard] of rows)
    assert.equal(kinds(ran(Mail_Points === undefined ? {} : { Mail_Points }, end)), heard, `${Mail_Points} ${end}`);
});

test("the words of a mail, and whom it goes to", () => {
  const end = mails(ran({ Mail_Points: "e", Mail_Users: ["bob", "carol@far.org"], Job_Name: "count" }, "ends"))[0];
  assert.deepEqual(
    [end?.mailer, end?.from, end?.to, end?.subject],
    ["/usr/sbin/sendmail", "adm", ["bob", "carol@far.org"], "PBS JOB 1.svr"],
  );
  assert.deepEqual(end?.body.split("\n").slice(0, 5), [
    "PBS Job Id: 1.svr",
    "Job Name:   count",
    "Execution terminated",
    "Exit_status=0",
    "resources_used.cput=00:00:00",
  ]);
  const limit = mails(ran({}, "limit"))[0];
  assert.deepEqual(limit?.to, ["alice@svr"]);
  assert.deepEqual(limit?.body.split("\n").slice(2), [
    "Aborted by PBS Server",
    "Job exceeded resource walltime",
    "See job standard error file",
    "",
  ]);
  assert.deepEqual(
    mails(ran({ Mail_Points: "b" }, "ends"))[0]
      ?.body.split("\n")
      .slice(2),
    ["Begun execution", ""],
  );
});

test("a deletion by somebody else is told, with who it was", () => {
  const h = harness();
  const id = addJob(h);
  askOk(h, ROOT, { kind: "delete-job", job: id });
  assert.match(mails(h)[0]?.body ?? "", /\nAborted by PBS Server\nJob deleted at request of root@svr\n/);
});

test("addresses that could be taken for options or commands are left out", () => {
  const Mail_Users = ["-oQ/tmp", "a b", "x;y", "bob", "c|d", "$(id)", "e\nBcc: f"];
  assert.deepEqual(mails(ran({ Mail_Points: "e", Mail_Users }, "ends"))[0]?.to, ["bob"]);
});

test("PBS_MAIL_HOST_NAME: the domain of those without one, and of owners", () => {
  assert.deepEqual(addressesOf({ to: ["bob", "carol@far.org"], to_owner: false }, "site.org"), ["bob@site.org", "carol@far.org"]);
  assert.deepEqual(addressesOf({ to: ["alice@svr"], to_owner: true }, "site.org"), ["alice@site.org"]);
  assert.deepEqual(addressesOf({ to: ["alice@svr"], to_owner: true }, undefined), ["alice@svr"]);
});

test("the mail program gets the mail as it is, without a shell or our environment; all of a crowd are sent; failures are told", async () => {
  const directory = mkdtempSync(join(tmpdir(), "partita-mail-"));
  const told: string[] = [];
  const until = async (what: string, ask: () => boolean): Promise<void> => {
    for (let tries = 0; !ask(); tries++) {
      if (tries > 6000) throw new Error(`never: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  try {
    const program = join(directory, "sendmail");
    const out = join(directory, "out");
    writeFileSync(program, `#!/bin/sh\n{ echo "args: $*"; echo "secret: $PARTITA_SECRET"; cat; } > ${out}.new\nmv ${out}.new ${out}\n`);
    chmodSync(program, 0o755);
    process.env["PARTITA_SECRET"] = "x";
    const { send } = mailer({ domain: undefined, identity: null, problem: (text) => told.push(text) });
    const mail = { mailer: program, from: "adm", to: ["bob"], to_owner: false, subject: "PBS JOB 1.svr", body: "$(id) `id`\n" };
    send(mail);
    await until("the mail", () => existsSync(out));
    assert.equal(readFileSync(out, "utf8"), "args: -f adm -- bob\nsecret: \nTo: bob\nSubject: PBS JOB 1.svr\n\n$(id) `id`\n");
    writeFileSync(program, `#!/bin/sh\ncat > /dev/null\necho sent >> ${out}.many\n`);
    for (let n = 0; n < 40; n++) send(mail);
    await until("all forty", () => existsSync(`${out}.many`) && readFileSync(`${out}.many`, "utf8").length === 40 * 5);
    send({ ...mail, mailer: "/bin/false" });
    await until("a failure", () => told.length === 1);
    for (let n = 0; n < 3; n++) send({ ...mail, mailer: join(directory, "none") });
    await until("a missing one", () => told.length === 2);
    assert.match(told.join("\n"), /^mail "PBS JOB 1.svr" failed: \/bin\/false ended with 1\nmail .* failed: there is no .*none/);
  } finally {
    delete process.env["PARTITA_SECRET"];
    rmSync(directory, { recursive: true });
  }
});
