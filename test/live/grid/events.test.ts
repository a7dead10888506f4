// Events and what follows from them, over one of our own complexes: a test a row.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, startComplex, until } from "../complex.ts";
import { ROOT } from "../shared.ts";
import { type Grid, startGrid } from "./bed.ts";

let complex: Complex;
let grid: Grid;
let hook: Server;
/** what the webhook has received, and the statuses that it answers with; 200 when there are no more */
const posts: { readonly path: string; readonly body: { readonly user: string; readonly events: readonly { readonly code: string }[] } }[] =
  [];
const statuses: number[] = [];

before(async () => {
  complex = await startComplex();
  complex.qmgr("set server job_history_enable=True", "set node @default resources_available.ncpus=4");
  grid = startGrid();
  grid.must("gridclusters", ["--add", "here", "--type", "partita", "--conf", join(complex.home, "pbs.conf")]);
  hook = createServer((request, response) => {
    request.setEncoding("utf8");
    let text = "";
    request.on("data", (part: string) => {
      text += part;
    });
    request.on("end", () => {
      posts.push({ path: request.url ?? "", body: JSON.parse(text) });
      response.writeHead(statuses.shift() ?? 200).end();
    });
  });
  await new Promise<void>((resolve) => hook.listen(0, "127.0.0.1", resolve));
});
after(async () => {
  hook?.close();
  grid?.stop();
  await complex?.stop();
});

/** Writes the administrator's settings. A fake of sendmail writes each mail into a file. */
function configure(...more: readonly string[]): void {
  const program = join(grid.work, "sendmail");
  writeFileSync(
    program,
    `#!/bin/sh\n{ echo "args: $*"; cat; } > ${grid.work}/mail.$$.new && mv ${grid.work}/mail.$$.new ${grid.work}/mail.$$\n`,
  );
  chmodSync(program, 0o755);
  const lines = [`mailer=${program}`, "notify_pause=0", "notify_retry=0.1", `webhooks=${hookUrl()}allowed/`, ...more];
  writeFileSync(join(grid.home, "pbs/grid_priv/grid.conf"), `${lines.join("\n")}\n`);
}

const hookUrl = (): string => `http://127.0.0.1:${(hook.address() as AddressInfo).port}/`;
const mails = (): readonly string[] =>
  readdirSync(grid.work)
    .filter((name) => /^mail\.\d+$/.test(name))
    .map((name) => readFileSync(join(grid.work, name), "utf8"));

/** A campaign whose jobs run these lines of the shell. */
function campaign(name: string, lines: string, more: object = {}): object {
  const script = join(grid.work, `${name}.sh`);
  writeFileSync(script, `${lines}\n`);
  const common = { name, exec_file: `/bin/sh ${script}`, exec_directory: grid.work, walltime: "00:05:00", clusters: { here: {} } };
  return { ...common, ...more };
}

test("judas: mail and webhook are received; a webhook that fails is tried again; its path is in no log", async () => {
  configure();
  grid.must("gridnotify", ["-m", "anna@example.org", "-s", "low"]);
  grid.must("gridnotify", ["-w", `${hookUrl()}allowed/secret`, "-s", "medium"]);
  const refused = grid.run("gridnotify", ["-w", `${hookUrl()}elsewhere`]);
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /not allowed/);
  statuses.push(503, 503);
  const id = grid.submit(campaign("fails", "exit 3", { nb_jobs: 1 }));
  await until("three posts", () => posts.length >= 3);
  for (const { path, body } of posts) assert.deepEqual([path, body.events.map(({ code }) => code)], ["/allowed/secret", ["EXIT_ERROR"]]);
  await until("a mail about the failure", () =>
    mails().some((text) => text.includes(`Subject: PBS GRID EXIT_ERROR campaign ${id} (fails)`)),
  );
  assert.match(mails()[0] ?? "", /^args: -f adm -- anna@example\.org\nTo: anna@example\.org\n/);
  grid.must("gridevents", ["-f", "-c", String(id)]);
  await grid.untilState(id, "terminated");
  await until("a mail about the end", () => mails().some((text) => text.includes("CAMPAIGN_TERMINATED")));
  assert.equal(posts.length, 3);
  const shown = JSON.parse(grid.must("gridnotify", ["-F", "json"])) as { readonly items: readonly { readonly method: string }[] };
  assert.deepEqual(shown.items.map(({ method }) => method).sort(), ["mail", "webhook"]);
  const log = readdirSync(join(grid.home, "pbs/grid_logs")).map((name) => readFileSync(join(grid.home, "pbs/grid_logs", name), "utf8"));
  assert.match(log.join(""), /webhook has answered with status 503/);
  assert.doesNotMatch(log.join(""), /secret/);
});

test("judas: a webhook that refuses is given up at once; a subscription survives the daemon, and ends by -u", async () => {
  const before_posts = posts.length;
  statuses.push(404);
  const id = grid.submit(campaign("again", "exit 3", { nb_jobs: 1 }));
  await until("the failure is noted", () => /NOTIFY_FAILED .*status 404/.test(grid.must("gridevents", ["-a"])));
  assert.equal(posts.length, before_posts + 1);
  assert.doesNotMatch(grid.must("gridevents", ["-a"]), /secret/);
  process.kill(grid.pid() ?? 0, "SIGKILL");
  await until("the daemon has ended", () => grid.pid() === null);
  grid.start();
  grid.must("gridevents", ["-f", "-r", "-c", String(id)]);
  await until("a post by the next daemon", () => posts.length > before_posts + 1);
  grid.must("gridnotify", ["-u", "-w", `${hookUrl()}allowed/secret`]);
  grid.must("gridnotify", ["-u", "-m", "anna@example.org"]);
  assert.deepEqual(JSON.parse(grid.must("gridnotify", ["-F", "json"])), { items: [], total: 0 });
  grid.must("griddel", [String(id)]);
  assert.ok(existsSync(join(grid.home, "pbs/grid_priv/grid.conf")));
});

test("a task that always exits with 66 waits for the user after resubmissions_max", async () => {
  const runs = join(grid.work, "runs");
  const id = grid.submit(campaign("endless", `echo x >> ${runs}; exit 66`, { nb_jobs: 1, resubmissions_max: 2 }));
  await until("the event", () => /RESUBMISSIONS .*run again 2 times/.test(grid.must("gridevents", [String(id)])));
  assert.equal(readFileSync(runs, "utf8"), "x\nx\nx\n");
  grid.must("griddel", [String(id)]);
});

test("jobs that the cluster can never run pause their campaign there", async () => {
  const id = grid.submit(campaign("wide", "true", { nb_jobs: 2, select: "1:ncpus=100", canary: false }));
  await until("the event", () => /IMPOSSIBLE .*can never run/.test(grid.must("gridevents", [String(id)])));
  await until("no job of the campaign left", () => grid.campaign(id).waiting_jobs === 0);
  assert.match(grid.must("gridstat", ["-f", String(id)]), /here +paused/);
  grid.must("griddel", [String(id)]);
});

test("gridstat: errors to fix, users, and a live view that only a terminal gets", async () => {
  const id = grid.submit(campaign("shown", "exit $1", { params: ["0", "3"] }));
  await until("an error to fix", () => grid.campaign(id).event_jobs === 1 && grid.campaign(id).finished_jobs === 1);
  assert.match(grid.must("gridstat", ["-e", String(id)]), /EXIT_ERROR .*exit code 3\n\ngridevents -f -r -e EVENT/);
  const users = JSON.parse(grid.must("gridstat", ["--by-user", "-F", "json"])) as {
    readonly items: readonly { readonly open_campaigns: number }[];
  };
  assert.deepEqual(
    users.items.map(({ open_campaigns }) => open_campaigns),
    [1],
  );
  const piped = grid.run("gridstat", ["--live", String(id)]);
  assert.equal(piped.status, 2);
  assert.match(piped.stderr, /--live needs a terminal/);
  grid.must("gridevents", ["-f", "-c", String(id)]);
  await grid.untilState(id, "terminated");
  // script runs the command on a terminal of its own.
  const command = `env PARTITA_HOME=${grid.home} ${join(ROOT, "bin/gridstat")} --live ${id}`;
  const { stdout, status } = spawnSync("script", ["-qec", command, "/dev/null"], { encoding: "utf8" });
  assert.deepEqual(
    [status, /shown .* terminated/.test(stdout), stdout.includes(`[${"#".repeat(40)}] 100.0 %  2/2`)],
    [0, true, true],
    stdout,
  );
  assert.match(grid.must("gridstat", ["-e", String(id)]), /^No errors to fix/);
});

test("gridnotify: a wrong command line is told with the usage", () => {
  for (const args of [
    ["-s", "low"],
    ["-u"],
    ["-m", "a", "-w", "b"],
    ["-m", "a", "-s", "much"],
    ["-j", "a"],
    ["x"],
    ["-u", "-m", "a", "-s", "low"],
  ]) {
    const { status, stderr } = grid.run("gridnotify", args);
    assert.equal(status, 2, args.join(" "));
    assert.match(stderr, /Usage: gridnotify/);
  }
  assert.match(grid.must("gridnotify", ["--help"]), /^Usage: gridnotify/);
  assert.match(grid.run("gridnotify", ["-m", "-oQ/tmp"]).stderr, /mail address|Usage/);
});
