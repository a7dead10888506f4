// Users of login hosts in system mode: hosts in network namespaces, a munged of the test's own. Who gets in, who does not, and as whom.

import assert from "node:assert/strict";
import { appendFileSync, chmodSync, mkdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { connectSocket } from "#protocol/client.ts";
import { until } from "../complex.ts";
import { lackOfUsers } from "../needed-users.ts";
import { ROOT } from "../shared.ts";
import { lackOfMunge, type Munged, startMunged } from "./munged.ts";
import { lackOfNamespaces, makeNet, type Net, type NetHost } from "./namespaces.ts";

const USER = "pbsuser1";
const OTHER = "pbsuser2";

type Ran = { readonly status: number | null; readonly out: string; readonly err: string };

type Bed = {
  readonly net: Net;
  readonly head: NetHost;
  readonly login: NetHost;
  readonly munged: Munged;
  homeOf(host: NetHost): string;
  /** a command on a host, as a user */
  run(host: NetHost, user: string, ...words: readonly string[]): Ran;
  must(host: NetHost, user: string, ...words: readonly string[]): string;
  job(id: string): Readonly<Record<string, unknown>>;
  log(): string;
};

function makeBed(net: Net, munged: Munged): Bed {
  const [head, login] = net.hosts as readonly [NetHost, NetHost];
  const exec = join(net.dir, "opt");
  const homeOf = ({ name }: NetHost): string => join(net.dir, name, "complex");
  const run: Bed["run"] = (host, user, name = "", ...args) => {
    const become = user === "root" ? [] : ["setpriv", `--reuid=${user}`, `--regid=${user}`, "--init-groups"];
    const conf = join(homeOf(host), "pbs.conf");
    const program = name === "partita" ? [join(exec, "bin/partita"), ...args, "--home", homeOf(host)] : [join(exec, "bin", name), ...args];
    const { status, stdout, stderr } = host.run([...become, "env", `PBS_CONF_FILE=${conf}`, "PARTITA_RESIDENT=no", ...program]);
    return { status, out: stdout, err: stderr };
  };
  const must: Bed["must"] = (host, user, ...words) => {
    const { status, out, err } = run(host, user, ...words);
    assert.equal(status, 0, `${user}@${host.name}: ${words.join(" ")}: ${out}${err}`);
    return out;
  };
  return {
    net,
    head,
    login,
    munged,
    homeOf,
    run,
    must,
    job(id) {
      const text = must(head, "root", "qstat", "-x", "-f", "-F", "json", id);
      return (JSON.parse(text) as { Jobs: Record<string, Record<string, unknown>> }).Jobs[id] ?? {};
    },
    log: () => head.must("sh", "-c", `cat ${join(homeOf(head), "pbs/server_logs")}/*`),
  };
}

const tokenIn = (text: string): string => /partita1\.\S+/.exec(text)?.[0] ?? "";
const skip = lackOfNamespaces() || lackOfUsers(USER, OTHER) || lackOfMunge();

test("users of a login host: known by munge or by a certificate of their own, on the host that its certificate names", {
  skip,
}, async () => {
  const munged = await startMunged();
  const net = makeNet(["head", "login1"], { home: true });
  const bed = makeBed(net, munged);
  const { head, login } = bed;
  try {
    const exec = join(net.dir, "opt");
    head.must(join(ROOT, "bin/partita"), "init", "--system", "--prefix", exec, "--home", bed.homeOf(head));
    appendFileSync(join(bed.homeOf(head), "pbs.conf"), `PARTITA_MUNGE_SOCKET=${munged.socket}\n`);
    bed.must(head, "root", "partita", "start");
    bed.must(head, "root", "qmgr", "-c", "set server job_history_enable = True");
    const token = tokenIn(bed.must(head, "root", "partita", "cert", "token"));
    const joined = login.must(
      join(exec, "bin/partita"),
      ...["join", "head", "--token", token, "--prefix", exec, "--home", bed.homeOf(login), "--login"],
    );
    assert.match(joined, /Users are known by munge/);
    appendFileSync(join(bed.homeOf(login), "pbs.conf"), `PARTITA_MUNGE_SOCKET=${munged.socket}\n`);
    await submits(bed);
    obeysLists(bed);
    knowsRoot(bed);
    await withoutMunge(bed);
    withCertificate(bed);
    await isFlooded(bed);
  } finally {
    for (const host of [login, head]) host.run([join(net.dir, "opt/bin/partita"), "stop", "--home", bed.homeOf(host)]);
    net.close();
    await munged.close();
  }
});

/** A user's commands from the login host, and the owner's rights over the job. */
async function submits(bed: Bed): Promise<void> {
  const { login, head, must, run } = bed;
  const out = join(bed.net.dir, "out");
  mkdirSync(out);
  chmodSync(out, 0o777);
  const id = must(login, USER, "qsub", "-j", "oe", "-o", `head:${out}/job`, "--", "/usr/bin/id", "-un").trim();
  assert.equal(id, "1.head");
  await until("the job has ended", () => bed.job(id)["job_state"] === "F");
  const job = bed.job(id);
  assert.deepEqual([job["Exit_status"], job["Job_Owner"], job["Submit_Host"]], [0, `${USER}@login1`, "login1"]);
  assert.equal((job["Variable_List"] as Record<string, string>)["PBS_O_HOST"], "login1");
  assert.equal(readFileSync(join(out, "job"), "utf8"), `${USER}\n`);

  const held = must(login, USER, "qsub", "-h", "--", "/bin/true").trim();
  const refused = run(login, OTHER, "qdel", held);
  assert.deepEqual([refused.status, refused.err], [15007 % 256, `qdel: Unauthorized Request  ${held}\n`]);
  assert.notEqual(run(head, USER, "qdel", held).status, 0, "the same user on another host is another owner");
  must(login, USER, "qdel", `${held}@head`);
  assert.match(run(login, USER, "qstat", "1@localhost").err, /^No support for requested service\n/, "this host is not the server");
}

/** acl_hosts names hosts by their certificates. */
function obeysLists({ head, login, must, run }: Bed): void {
  must(head, "root", "qmgr", "-c", "set server acl_hosts = 10.99.0.2");
  must(head, "root", "qmgr", "-c", "set server acl_host_enable = True");
  const refused = run(login, USER, "qselect");
  assert.notEqual(refused.status, 0);
  assert.match(refused.err, /Access from host not allowed/);
  must(head, "root", "qmgr", "-c", "set server acl_hosts = login1");
  must(login, USER, "qselect");
  must(head, "root", "qmgr", "-c", "unset server acl_host_enable");
}

/** Root of a login host is a user like others, until a manager says more. */
function knowsRoot({ head, login, must, run }: Bed): void {
  const submit = ["qsub", "-h", "--", "/bin/true"];
  assert.match(run(login, "root", ...submit).err, /Bad UID for job execution/);
  assert.match(run(login, "root", "qmgr", "-c", "create queue far").err, /Unauthorized Request/);
  must(head, "root", "qmgr", "-c", "set server acl_roots = root@login1");
  must(login, "root", ...submit);
  must(head, "root", "qmgr", "-c", "unset server acl_roots");
  must(head, "root", "qmgr", "-c", "set server managers += root@login1");
  must(login, "root", "qmgr", "-c", "create queue far");
  assert.match(run(login, "root", "partita", "cert", "list").err, /Unauthorized Request/, "the authority obeys root of its own host");
}

/** A munged that is missing, and one that hangs. */
async function withoutMunge(bed: Bed): Promise<void> {
  const { login, head, munged, run, must } = bed;
  const conf = join(bed.homeOf(login), "pbs.conf");
  login.must("sed", "-i", "s|^PARTITA_MUNGE_SOCKET=|&/nonexistent|", conf);
  const ran = run(login, USER, "qselect");
  assert.equal(ran.status, 15019 % 256);
  assert.match(ran.err, /^MUNGE cannot prove who you are: .*\/nonexistent.*\nqselect: cannot connect to server head \(errno=15019\)\n$/);
  assert.match(must(login, "root", "partita", "cert", "renew", "--due"), /^The certificate of this host is valid until /);
  assert.match(run(login, "root", "partita", "doctor").out, /need certificates of their own \(partita cert user\): MUNGE: .*\/nonexistent/);
  login.must("sed", "-i", "s|/nonexistent||", conf);
  assert.match(run(login, "root", "partita", "doctor").out, /MUNGE proves users of this host to the server/);
  munged.pause();
  const stuck = run(login, USER, "qselect");
  assert.equal(stuck.status, 15019 % 256);
  assert.match(stuck.err, /^MUNGE cannot prove who you are: /);
  must(head, OTHER, "qselect");
  munged.resume();
  await until("munged answers again", () => run(login, USER, "qselect").status === 0);
}

/** A certificate of the user takes the place of munge. */
function withCertificate({ net, head, login, homeOf, must, run }: Bed): void {
  const [, , , , , directory = ""] = login.must("getent", "passwd", USER).split(":");
  const path = join(net.home, basename(directory), ".partita/identity/head@login1.pem");
  try {
    const token = tokenIn(must(head, "root", "partita", "cert", "token", "--user", USER));
    assert.match(run(login, "root", "partita", "cert", "user", "--token", token).err, /the token is for the user pbsuser1, not for root/);
    assert.match(run(login, USER, "partita", "cert", "user", "--token", token).err, /the server refuses: the token was used already/);
    const again = tokenIn(must(head, "root", "partita", "cert", "token", "--user", USER, "--host", "login1"));
    assert.match(
      must(login, USER, "partita", "cert", "user", "--token", again),
      /^pbsuser1 has a certificate for this host, until .*pem\n$/,
    );
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.match(must(head, "root", "partita", "cert", "list"), /login1 +user pbsuser1 +valid/);

    const conf = join(homeOf(login), "pbs.conf");
    login.must("sed", "-i", "s|^PARTITA_MUNGE_SOCKET=|&/nonexistent|", conf);
    must(login, USER, "qselect");
    assert.match(run(login, OTHER, "qselect").err, /^MUNGE cannot prove who you are/);
    appendFileSync(conf, "PBS_AUTH_METHOD=munge\n");
    assert.match(run(login, USER, "qselect").err, /^MUNGE cannot prove who you are/);
    login.must("sed", "-i", "/^PBS_AUTH_METHOD/d", conf);
    chmodSync(path, 0o640);
    assert.match(run(login, USER, "qselect").err, /can be read by group or others, or belongs to another user: it is not used\nqselect: /);
    chmodSync(path, 0o600);
    assert.match(must(head, "root", "partita", "cert", "revoke", "--user", USER), /^pbsuser1: \d certificates? revoked/);
    const revoked = run(login, USER, "qselect");
    assert.match(revoked.err, /^the certificate \w+ of login1 was revoked\nqselect: cannot connect to server head \(errno=15019\)\n$/);
    login.must("sed", "-i", "s|/nonexistent||", conf);
  } finally {
    rmSync(path, { force: true });
  }
}

/** A hostile user of the login host opens connections that prove nothing. Users of another host do not notice it, and those of the same host are served afterwards. */
async function isFlooded({ net, head, login, homeOf, run }: Bed): Promise<void> {
  const flood = [process.execPath, join(import.meta.dirname, "flood.mjs"), "head", "15001", join(homeOf(login), "pbs/identity")];
  login.must("sh", "-c", 'file=$1; shift; "$@" >/dev/null 2>&1 </dev/null & echo $! >"$file"', "sh", join(net.dir, "flood.pid"), ...flood);
  const pid = Number(readFileSync(join(net.dir, "flood.pid"), "utf8"));
  const other = await connectSocket(join(homeOf(head), "pbs/sock/server.sock"));
  const taken_ms: number[] = [];
  try {
    const is_noticed = (): boolean =>
      /proved nothing|no certificate|without certificate|no proof|munge credential is refused/.test(
        head.must("sh", "-c", `cat ${homeOf(head)}/pbs/server_logs/*`),
      );
    for (let answers = 0; answers < 100 || !is_noticed(); answers++) {
      const begin_ms = performance.now();
      const reply = await other.request({ kind: "status", object: "server", ids: [] });
      assert.equal(reply.ok, true);
      taken_ms.push(performance.now() - begin_ms);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  } finally {
    process.kill(pid, "SIGKILL");
    other.close();
  }
  taken_ms.sort((a, b) => a - b);
  console.log(
    `# requests of another user during the flood: median ${taken_ms[taken_ms.length >> 1]?.toFixed(1)} ms, longest ${taken_ms.at(-1)?.toFixed(1)} ms`,
  );
  await until("users of the same host are served", () => run(login, USER, "qselect").status === 0);
}
