// pbs_runner: a runner. It is a mom with the name of the runner, in a directory of its own, which ends when the server has no more jobs for it. Backends start it; the environment
// says who it is (src/backends/contract/backend.ts RUNNER_ENV).
//
// W1. The token is read from its file at once, is never in an argument, a log or the environment of a job, and goes to the server only.
// W2. If this process ends in whatever way, its jobs are ended: the starter notices the end of the pipe to its mom (src/mom/starter/starter-main.ts M5).
// W3. A runner whose complex is gone ends (home-watch.ts).
// W4. A runner removes the directories of runners that were killed (old-homes.ts).
// W4. In system mode a runner is a process of one user. It has no right to become another, so it works like a mom of a complex in user mode, and takes jobs of its own user only.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RUNNER_ENV } from "#backends/contract/backend.ts";
import { parseTag } from "#backends/contract/tag.ts";
import { parseMomOptions } from "#mom/config/options.ts";
import { Mom } from "#mom/shell/mom.ts";
import { runnerName } from "#protocol/runner-link.ts";
import { messageOf } from "#support/caught.ts";
import { type Conf, readConf } from "#support/conf.ts";
import { closeForeignDescriptors } from "#support/descriptors.ts";
import { homeWatch } from "./home-watch.ts";
import { HOME_PREFIX, holdHome, removeOldHomes } from "./old-homes.ts";

const LOOK_MS = 2000;

async function main(): Promise<number> {
  const started_ms = performance.now() - process.uptime() * 1000;
  closeForeignDescriptors();
  const env = process.env;
  const [tag, index, token_file] = [env[RUNNER_ENV.TAG], env[RUNNER_ENV.INDEX], env[RUNNER_ENV.TOKEN_FILE]];
  for (const name of Object.values(RUNNER_ENV)) delete env[name];
  const parts = parseTag(tag ?? "");
  if (parts === null || !/^\d{1,6}$/.test(index ?? "") || token_file === undefined)
    return failed("it is started by a backend, not by hand");
  const token = readFileSync(token_file, "utf8").trim();
  const name = runnerName(parts.backend, parts.serial, Number(index));
  process.title = `pbs_runner ${name}`;
  const complex = readConf();
  if (complex.mode === "system" && process.geteuid?.() === 0)
    return failed("in system mode, a runner runs as the owner of its jobs, never as root");
  const home = mkdtempSync(join(tmpdir(), HOME_PREFIX));
  const lock = holdHome(home);
  if (!("held" in lock)) return failed(`process ${lock.owner_pid} has taken ${home}`);
  removeOldHomes(tmpdir(), home, Date.now());
  const own = complex.mode === "system" ? ownTemporary(home) : {};
  const conf = { ...complex, ...own, mom_home: home, mom_node_name: name };
  const options = parseMomOptions(["-N", "-d", home]);
  if (typeof options === "string") return failed(options);
  const isGone = homeWatch(() => existsSync(conf.home));
  const watch = setInterval(() => {
    if (!isGone()) return;
    rmSync(home, { recursive: true, force: true });
    process.exit(1);
  }, LOOK_MS);
  try {
    const mom = new Mom(conf, options, { token, age_s: () => (performance.now() - started_ms) / 1000 });
    return await mom.ended;
  } finally {
    clearInterval(watch);
    rmSync(home, { recursive: true, force: true, maxRetries: 3 });
  }
}

/**
 * System mode (W4). Temporary directories of jobs are in the directory of the runner, because other users could make the expected names in a shared one before.
 */
function ownTemporary(home: string): Pick<Conf, "mode" | "tmpdir"> {
  const directory = join(home, "tmp");
  mkdirSync(directory, { mode: 0o700 });
  return { mode: "user", tmpdir: directory };
}

function failed(text: string): number {
  writeSync(2, `pbs_runner: ${text}\n`);
  return 1;
}

main().then(
  (status) => process.exit(status),
  (error: unknown) => process.exit(failed(error instanceof Error ? (error.stack ?? error.message) : messageOf(error))),
);
