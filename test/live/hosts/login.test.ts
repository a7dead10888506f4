// A host without daemons, from which commands reach the server over TLS. In user mode on the loopback interface: the certificate of the host is that of the complex's
// one user. In system mode with hosts in network namespaces: users.test.ts.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { appendFileSync, copyFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { freePort } from "../../protocol/wire/tls-bed.ts";
import { type Complex, startComplex } from "../complex.ts";
import { ROOT } from "../shared.ts";

type Ran = { readonly status: number | null; readonly out: string; readonly err: string };

function call(words: readonly string[], env: NodeJS.ProcessEnv = process.env, cwd = "/", input = ""): Ran {
  const { status, stdout, stderr } = spawnSync(words[0] ?? "", words.slice(1), { encoding: "utf8", cwd, env, input, timeout: 300_000 });
  return { status, out: stdout, err: stderr };
}

function partita(...args: readonly string[]): string {
  const { status, out, err } = call([join(ROOT, "bin/partita"), ...args]);
  assert.equal(status, 0, `partita ${args.join(" ")}: ${out}${err}`);
  return out;
}

type Login = {
  readonly home: string;
  readonly conf: string;
  run(words: readonly string[], input?: string): Ran;
  must(...words: readonly string[]): string;
};

/** A login host of that name, with its directory beside the complex. */
function joinLogin(complex: Complex, port: number, name: string): Login {
  const home = join(complex.home, "..", name);
  const token = /partita1\.\S+/.exec(partita("cert", "token", "--home", complex.home))?.[0] ?? "";
  const said = partita("join", "127.0.0.1", "--port", String(port), "--token", token, "--name", name, "--home", home, "--login");
  assert.match(said, new RegExp(`^${name} is a host of .*\nUse it: +eval "\\$\\(partita env --home \\S+\\)"\n$`));
  const conf = join(home, "pbs.conf");
  appendFileSync(conf, "PARTITA_RESIDENT=no\n");
  const env = { ...process.env, PBS_CONF_FILE: conf, PATH: `${join(ROOT, "bin")}:${process.env["PATH"] ?? ""}` };
  const work = join(home, "work");
  mkdirSync(work);
  const run: Login["run"] = (words, input) => call(words, env, work, input);
  return {
    home,
    conf,
    run,
    must(...words) {
      const { status, out, err } = run(words);
      assert.equal(status, 0, `${words.join(" ")}: ${out}${err}`);
      return out;
    },
  };
}

const serverOf = (conf: string): string => /^PBS_SERVER=(.*)$/m.exec(readFileSync(conf, "utf8"))?.[1] ?? "";

test("a login host: all commands reach the server over TLS, as the user and the host that the certificate names", async () => {
  const port = await freePort();
  const complex = await startComplex({ conf: { PBS_BATCH_SERVICE_PORT: String(port) } });
  try {
    complex.qmgr("set server job_history_enable = True");
    const login = joinLogin(complex, port, "login1");
    const server = serverOf(login.conf);
    assert.match(readFileSync(login.conf, "utf8"), /^PBS_START_MOM=0$/m);
    assert.match(partita("status", "--home", login.home), /the server \S+ answers, and knows this host as login1/);

    const id = login.run(["qsub", "-N", "afar"], "sleep 1000\n").out.trim();
    assert.match(id, new RegExp(`^\\d+\\.${server}$`));
    const job = complex.job(id);
    assert.deepEqual([job["Submit_Host"], /@(.*)/.exec(String(job["Job_Owner"]))?.[1]], ["login1", "login1"]);
    assert.equal((job["Variable_List"] as Record<string, string>)["PBS_O_HOST"], "login1");
    assert.equal(String(job["Output_Path"]), `login1:${join(login.home, "work")}/afar.o${id.split(".")[0]}`);

    const [seq = ""] = id.split(".");
    assert.match(login.must("qstat"), new RegExp(`^${seq}\\.`, "m"));
    for (const name of [seq, `${seq}.${server}`, `${seq}@${server}`, `${id}@${server}`]) {
      assert.match(login.must("qstat", "-f", name), /Job_Name = afar/, name);
      login.must("qalter", "-l", "walltime=2:00:00", name);
    }
    assert.match(login.must("qsub", "-h", "-q", `workq@${server}`, "--", "/bin/true"), /^\d+\./);
    assert.match(login.must("qstat", "-B", server), new RegExp(`^${server.slice(0, 15)}`, "m"));
    assert.match(login.must("pbsnodes", "-a"), /state = /);
    login.must("qmgr", "-c", "create queue far queue_type = execution");
    assert.match(complex.must("qmgr", ["-c", "list queue far"]), /queue_type = Execution/);
    assert.match(login.must("pbs_rsub", "-R", "2359", "-D", "1:00", "-l", "select=1"), /^R\d+\./);
    login.must("qdel", `${id}@${server}`);
    await complex.untilJob(id, "F").catch(() => undefined);

    const elsewhere = login.run(["qstat", `${seq}@no-such-host.invalid`]);
    assert.notEqual(elsewhere.status, 0);
    assert.match(elsewhere.err, /^Unknown Host\.\nqstat: cannot connect to server \S+ \(errno=15008\)\n$/);
    refusals(complex, login, joinLogin(complex, port, "login2"), server);
  } finally {
    await complex.stop();
  }
});

/** What a user reads when the server cannot be reached or does not accept the host. */
function refusals(complex: Complex, login: Login, other: Login, server: string): void {
  const identity = (of: Login, name: string): string => join(of.home, "pbs/identity", name);
  const put = (of: Login, from: string, to: string): void => copyFileSync(identity(of, from), identity(of, to));
  const changed = (pattern: RegExp, line: string): void =>
    writeFileSync(login.conf, readFileSync(login.conf, "utf8").replace(pattern, line));
  const conf = readFileSync(login.conf, "utf8");
  renameSync(identity(login, "login.pem"), identity(login, "login.kept"));
  const restore = (): void => {
    put(login, "login.kept", "login.pem");
    writeFileSync(login.conf, conf);
  };
  const cannot = (name: string, errno: number): string => `qselect: cannot connect to server ${name} \\(errno=${errno}\\)\\n$`;
  // biome-ignore format: a table
  const rows: readonly (readonly [what: string, prepare: () => void, err: string, errno: number])[] = [
    ["no certificate", () => renameSync(identity(login, "login.pem"), identity(login, "login.gone")),
      "identity has no certificate for users of this host: as root, partita cert renew", 15019],
    ["the certificate of the host itself", () => put(login, "host.pem", "login.pem"),
      "Invalid credential: the certificate of login1 with the role host cannot be used for this", 15019],
    ["half a certificate", () => writeFileSync(identity(login, "login.pem"), "-----BEGIN"),
      "login.pem holds no certificate with its key", 15019],
    ["another server's name", () => changed(/^PBS_SERVER=.*$/m, "PBS_SERVER=other\nPBS_SERVER_HOST_NAME=127.0.0.1"),
      "the peer is the server \\S+, not other", 15019],
    ["nobody at the port", () => changed(/^PBS_BATCH_SERVICE_PORT=.*$/m, "PBS_BATCH_SERVICE_PORT=1"),
      "Connection refused", 15010],
    ["no such host", () => changed(/^PBS_SERVER_HOST_NAME=.*$/m, "PBS_SERVER_HOST_NAME=no-such-host.invalid"),
      "Unknown Host\\.", 15008],
  ];
  for (const [what, prepare, err, errno] of rows) {
    restore();
    prepare();
    const ran = login.run(["qselect"]);
    assert.match(ran.err, new RegExp(`${err}\\n${cannot(what === "another server's name" ? "other" : server, errno)}`), what);
    assert.deepEqual([ran.status, ran.out], [errno % 256, ""], what);
  }
  restore();
  login.must("qstat", "-B");
  assert.match(partita("cert", "revoke", "login1", "--home", complex.home), /login1: 2 certificates revoked/);
  const revoked = login.run(["qselect"]);
  assert.match(revoked.err, /^the certificate \w+ of login1 was revoked\nqselect: cannot connect to server/);
  assert.equal(revoked.status, 15019 % 256);
  other.must("qstat", "-B");
}
