// The packages of the lock file, by the system's npm.

import { accessSync, constants, existsSync } from "node:fs";
import { delimiter } from "node:path";
import { findProgram } from "./addon.mjs";
import { cacheDir } from "./cache.mjs";
import { Problem, runQuietly, say, tail } from "./run.mjs";

/** Time that npm has to reach its registry. */
const PING_S_MAX = 15;
const NETWORK_ERROR =
  /^npm (?:error|ERR!) code (ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ENETDOWN|ERR_SOCKET_TIMEOUT)$/m;

/** Installs the packages of the lock file. Without a network it reports that at once, unless npm's cache has everything. */
export async function installPackages(count) {
  const npm = findNpm();
  const fault = await networkFault(npm);
  say(`installing ${count} packages (npm ci${fault === null ? "" : ", without a network: from npm's cache"})`);
  const args = [
    ...npm.args,
    "ci",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
    ...(fault === null ? [] : ["--offline"]),
  ];
  const result = await runQuietly("npm ci", npm.program, args, { env: npm.env });
  if (result.status !== 0)
    throw new Problem(fault === null ? `npm ci failed (exit ${result.status}):\n${tail(result.output)}` : withoutNetwork(fault));
  say(`installed packages in ${result.seconds} s`);
}

/** The reason why npm cannot reach its registry, as an error code. Returns null if npm reaches it or prints an unknown message. */
export async function networkFault({ program, args, env }) {
  const ping = [...args, "ping", "--fetch-retries=0", "--fetch-timeout=5000"];
  const { status, output } = await runQuietly("npm ping", program, ping, { env, limit_s: PING_S_MAX });
  if (status === 0) return null;
  const [, code] = NETWORK_ERROR.exec(output) ?? [];
  return code ?? (status > 128 ? "no answer" : null);
}

export function withoutNetwork(fault) {
  return [
    `the packages cannot be fetched: npm does not reach its registry (${fault}), and its cache does not hold them.`,
    "Connect this machine to the network and try again. Behind a proxy: npm config set proxy URL. With a registry of your own: npm config set registry URL.",
    "Or copy node_modules from a checkout with the same package-lock.json on a machine of the same kind.",
  ].join("\n");
}

/** The system's npm, run by the system's node: the pinned node lies in the folder that npm ci empties. */
function findNpm() {
  const path = (process.env.PATH ?? "").split(delimiter).filter((dir) => !dir.includes("node_modules"));
  const env = { ...process.env, PATH: path.join(delimiter) };
  if (!homeIsWritable()) {
    const cache = cacheDir("npm");
    if (cache !== undefined) env.npm_config_cache = cache;
  }
  const program = findProgram("npm", env.PATH);
  if (program !== undefined) return { program, args: [], env };
  const script = process.env.npm_execpath;
  if (script && existsSync(script)) return { program: process.execPath, args: [script], env };
  throw new Problem("npm is missing.\nDebian, Ubuntu: sudo apt-get install -y npm");
}

function homeIsWritable() {
  try {
    accessSync(process.env.npm_config_cache ?? process.env.HOME ?? "", constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
