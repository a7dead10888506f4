// The launchers in bin/: started from any directory, by any path, in a checkout and in an installation.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url)).replace(/\/$/, "");
const folder = mkdtempSync(join(tmpdir(), "partita launchers "));
after(() => rmSync(folder, { recursive: true }));

type Ran = { readonly status: number | null; readonly stdout: string; readonly stderr: string };

function run(program: string, args: readonly string[], options: { readonly cwd?: string; readonly path?: string } = {}): Ran {
  const env = options.path === undefined ? process.env : { ...process.env, PATH: `${options.path}:/usr/bin:/bin` };
  return spawnSync(program, args, { encoding: "utf8", env, cwd: options.cwd ?? "/" });
}

/** PBS_EXEC as an installation lays it out, with links for the large parts. */
function installedLayout(name: string): string {
  const exec = join(folder, name);
  const base = join(exec, "lib", "partita");
  for (const dir of ["bin", "lib/partita/node_modules/node/bin"]) mkdirSync(join(exec, dir), { recursive: true });
  cpSync(join(ROOT, "bin", "qstat"), join(exec, "bin", "qstat"));
  symlinkSync(join(ROOT, "node_modules", "node", "bin", "node"), join(base, "node_modules", "node", "bin", "node"));
  return exec;
}

test("a launcher works by its path, from PATH, from its folder, under sh and through links of links", () => {
  const { stdout: version } = run(join(ROOT, "bin", "qstat"), ["--version"]);
  assert.match(version, /^pbs_version = \S+\n$/);
  symlinkSync(join(ROOT, "bin", "qstat"), join(folder, "first"));
  symlinkSync("first", join(folder, "my qstat"));
  const bin = join(ROOT, "bin");
  const ways: readonly (readonly [way: string, ran: Ran])[] = [
    ["from PATH", run("qstat", ["--version"], { path: bin })],
    ["relative", run("./qstat", ["--version"], { cwd: bin })],
    ["by sh without a slash", run("sh", ["qstat", "--version"], { cwd: bin })],
    ["through links", run(join(folder, "my qstat"), ["--version"])],
  ];
  for (const [way, { status, stdout, stderr }] of ways)
    assert.deepEqual({ status, stdout, stderr }, { status: 0, stdout: version, stderr: "" }, way);
});

test("a launcher passes arguments, directory and exit status on as they are", () => {
  const exec = installedLayout("arguments");
  const dist = join(exec, "lib", "partita", "dist");
  mkdirSync(dist);
  writeFileSync(join(dist, "qstat.cjs"), "console.log(JSON.stringify([process.cwd(), ...process.argv.slice(2)])); process.exitCode = 35;");
  const args = ["-Q", "two words", "*", "", "$HOME", "--", "it's"];
  const { status, stdout } = run(join(exec, "bin", "qstat"), args, { cwd: "/usr" });
  assert.deepEqual([status, JSON.parse(stdout)], [35, ["/usr", ...args]]);
});

test("an installed launcher starts the installed programs, and says so when they are missing", () => {
  const exec = installedLayout("exec");
  const missing = run(join(exec, "bin", "qstat"), ["--version"]);
  assert.equal(missing.status, 127);
  assert.match(missing.stderr, /^qstat: not installed yet/);
  const dist = join(exec, "lib", "partita", "dist");
  mkdirSync(dist);
  cpSync(join(ROOT, "dist", "qstat.cjs"), join(dist, "qstat.cjs"));
  const ran = run(join(exec, "bin", "qstat"), ["--version"]);
  assert.deepEqual([ran.status, ran.stderr], [0, ""]);
  assert.match(ran.stdout, /^pbs_version = /);
});

test("a command whose reader has gone ends as by SIGPIPE, without a message", async () => {
  const child = spawn(join(ROOT, "bin", "qstat"), ["--version"], { stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.destroy();
  let stderr = "";
  child.stderr.on("data", (data) => {
    stderr += data;
  });
  const [status] = await once(child, "close");
  assert.deepEqual([status, stderr], [141, ""]);
});

test("partita completes its calls and their options in bash", () => {
  const partita = join(ROOT, "bin", "partita");
  const script = spawnSync(partita, ["completion"], { encoding: "utf8" }).stdout;
  const completed = (line: string): string[] => {
    const ask = `${script}\nCOMP_LINE='${line}'; COMP_POINT=${line.length}; _pbs_complete partita '' ''; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const env = { ...process.env, PATH: `${join(ROOT, "bin")}:${process.env["PATH"]}` };
    return spawnSync("bash", ["-c", ask], { encoding: "utf8", env }).stdout.trim().split("\n");
  };
  assert.deepEqual(completed("partita ex"), ["explain"]);
  assert.deepEqual(completed("partita tok"), ["token"]);
  assert.deepEqual(completed("partita to"), ["top", "token"]);
  assert.deepEqual(completed("partita tune trace --pi"), ["--picture"]);
  assert.deepEqual(completed("partita explain --js"), ["--json"]);
});

/** A checkout with a Node that records its arguments; the server's report on descriptor 3 comes from the file `word`. */
function fakeCheckout(): { readonly base: string; ran(args: readonly string[]): Ran & { readonly nodes: readonly string[] } } {
  const base = join(folder, "checkout");
  const log = join(base, "ran");
  for (const dir of ["bin", "src", "native", "scripts/lib", "dist", "node_modules/node/bin"])
    mkdirSync(join(base, dir), { recursive: true });
  cpSync(join(ROOT, "bin", "pbs_server"), join(base, "bin", "pbs_server"));
  const files = ["src/a.ts", "src/b.ts", "scripts/refresh.mjs", "package.json", "package-lock.json", "node_modules/.partita.json"];
  for (const file of [...files, "dist/pbs_server.mjs", "dist/bundles.json"]) writeFileSync(join(base, file), "");
  const node = join(base, "node_modules/node/bin/node");
  writeFileSync(
    node,
    `#!/bin/sh\necho "\${1##*/}" "\${2##*/}" "$PWD" >>"${log}"\n[ "$PARTITA_READY_FD" = 3 ] && cat "${base}/word" >&3\nexit 0\n`,
  );
  chmodSync(node, 0o755);
  writeFileSync(join(base, "word"), "ready\n");
  return {
    base,
    ran(args) {
      rmSync(log, { force: true });
      const ran = run(join(base, "bin", "pbs_server"), args, { cwd: base });
      return { ...ran, nodes: existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : [] };
    },
  };
}

test("the launcher of a daemon has bundles refreshed when a source is younger than they, or gone", () => {
  const { base, ran } = fakeCheckout();
  const built = (): void => utimesSync(join(base, "dist", "bundles.json"), new Date(), Date.now() / 1000 + 1);
  const start = `pbs_server.mjs -N ${base}`;
  const refresh = `refresh.mjs pbs_server ${base}`;
  built();
  assert.deepEqual(ran(["-N"]).nodes, [start]);
  utimesSync(join(base, "src", "a.ts"), new Date(), Date.now() / 1000 + 2);
  assert.deepEqual(ran(["-N"]).nodes, [refresh, start], "younger");
  utimesSync(join(base, "src", "a.ts"), 0, 0);
  assert.deepEqual(ran(["-N"]).nodes, [start]);
  utimesSync(join(base, "dist", "bundles.json"), 1e9, 1e9);
  for (const path of ["src", "native", "scripts/lib", "src/b.ts", "package.json", "package-lock.json"])
    utimesSync(join(base, path), 9e8, 9e8);
  assert.deepEqual(ran(["-N"]).nodes, [start]);
  rmSync(join(base, "src", "b.ts"));
  assert.deepEqual(ran(["-N"]).nodes, [refresh, start], "gone");
  built();
  rmSync(join(base, "dist", "pbs_server.mjs"));
  assert.deepEqual(ran(["-N"]).nodes, [refresh, start], "no bundle");
});

test("pbs_server goes into the background with one Node: its launcher waits for its word", () => {
  const { base, ran } = fakeCheckout();
  const say = (word: string): Ran & { readonly nodes: readonly string[] } => {
    writeFileSync(join(base, "word"), word);
    return ran([]);
  };
  utimesSync(join(base, "dist", "bundles.json"), new Date(), Date.now() / 1000 + 1);
  const told = (word: string): readonly unknown[] => {
    const { status, stdout, stderr, nodes } = say(word);
    return [status, stdout, stderr, nodes];
  };
  const nodes = ["pbs_server.mjs  /"];
  assert.deepEqual(told("ready\n"), [0, "", "", nodes]);
  assert.deepEqual(told("pbs_server: no\n"), [1, "", "pbs_server: no\n", nodes]);
  assert.deepEqual(told(""), [1, "", "pbs_server: ended before it answered; see the server's log\n", nodes]);
});

test("the launcher of pbs_server returns at the server's word and not at its end, whatever shell sh is", () => {
  const { base } = fakeCheckout();
  utimesSync(join(base, "dist", "bundles.json"), new Date(), Date.now() / 1000 + 1);
  const serving = "i=0; until [ -e end ] || [ $i = 100 ]; do i=$((i+1)); sleep 0.1; done; : >ended";
  writeFileSync(join(base, "node_modules/node/bin/node"), `#!/bin/sh\ncd "${base}"; echo ready >&3; exec 3>&-; ${serving}\n`);
  for (const shell of ["sh", "bash", "bash --posix"]) {
    const [program = "", ...words] = [...shell.split(" "), join(base, "bin", "pbs_server")];
    const { status, stderr } = spawnSync(program, words, { encoding: "utf8", env: process.env });
    const lives = !existsSync(join(base, "ended"));
    writeFileSync(join(base, "end"), "");
    spawnSync("sh", ["-c", "until [ -e ended ]; do sleep 0.05; done"], { cwd: base, timeout: 30_000 });
    assert.deepEqual([shell, status, stderr, lives], [shell, 0, "", true]);
    for (const name of ["end", "ended"]) rmSync(join(base, name));
  }
});

test("pbs_server says why there is no server", () => {
  const conf = join(folder, "no.conf");
  const { status, stderr } = spawnSync(join(ROOT, "bin", "pbs_server"), { encoding: "utf8", env: { ...process.env, PBS_CONF_FILE: conf } });
  const [fault, hint] = stderr.split("\n");
  assert.deepEqual([status, fault], [1, "pbsconf error: pbs conf variables not found: PBS_HOME PBS_EXEC PBS_SERVER"]);
  assert.match(hint ?? "", / cannot be read\. .* eval "\$\(partita env --home DIR\)"$/);
});
