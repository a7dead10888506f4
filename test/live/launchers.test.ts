// The launchers in bin/: from any place, by any path, in a checkout and installed.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
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
    const words = line.split(" ");
    const quoted = words.map((word) => `'${word}'`).join(" ");
    const ask = `${script}\nCOMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _partita_yargs_completions; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const env = { ...process.env, PATH: `${join(ROOT, "bin")}:${process.env["PATH"]}` };
    return spawnSync("bash", ["-c", ask], { encoding: "utf8", env }).stdout.trim().split("\n");
  };
  assert.deepEqual(completed("partita ex"), ["explain"]);
  assert.deepEqual(completed("partita to"), ["top"]);
  assert.deepEqual(completed("partita sim trace --pi"), ["--picture"]);
  assert.deepEqual(completed("partita explain --js"), ["--json"]);
});
