// The test runner: `test.mjs check|test|all [--added] [FILE...]`. Runs layers, each in its own process, and ends with one line `N passed, N failed`.
//
// A test belongs to the layer of its folder; a new file needs no registration. With FILEs (or folders) only those tests run, whatever their layer.
// --added: only the layers of `all` that `test` does not run (CI runs both), and the files of which an earlier run skipped something because the machine was
// not prepared: the reason then names scripts/test-host.sh, and the earlier run notes the file in the file PARTITA_TEST_SKIPPED.

import { spawn } from "node:child_process";
import { appendFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { refreshBundles } from "./lib/bundle.mjs";
import { filesToLint } from "./lib/lint-record.mjs";
import { loginLock, watchLoginLock } from "./lib/login-lock.mjs";
import { MODULES, ROOT, RUNTIME } from "./lib/paths.mjs";
import { Problem, runInOurPlace, say, tail } from "./lib/run.mjs";
import { watchSilence } from "./lib/silence.mjs";

/**
 * folder: where the layer's tests lie (pure: everything that no other layer has; a folder in the folder of another layer belongs to its own layer only); also: names of files elsewhere that take seconds. isolated: a process per file, with fresh bundles.
 * processes: files that share a process are dealt out to so many. at_once: isolated files at a time.
 * silence_min: a run in which no test ends for so many minutes hangs; it is ended and counts as a failure. A busy machine takes longer over the whole
 * run, but every test ends some time, so the limit is on the pause between two tests and not on the run.
 */
const LAYERS = [
  { name: "pure", in: "check", isolated: false, processes: 2, silence_min: 10 },
  { name: "sim", in: "test", folder: "test/sim", also: /(properties|golden)\.test\.ts$/, isolated: false, processes: 2, silence_min: 20 },
  { name: "live", in: "test", folder: "test/live", isolated: true, at_once: 3, silence_min: 20 },
  { name: "hosts", in: "all", folder: "test/live/hosts/long", isolated: true, at_once: 2, silence_min: 20 },
  { name: "peers", in: "all", folder: "test/live/backends/peers", isolated: true, at_once: 1, silence_min: 20 },
  { name: "transcripts", in: "all", folder: "test/transcripts", isolated: true, at_once: 1, silence_min: 30 },
  { name: "kill", in: "all", folder: "test/kill", isolated: true, at_once: 1, silence_min: 20 },
  { name: "clients", in: "all", folder: "test/clients", isolated: true, at_once: 1, silence_min: 20 },
];
/** Time limit for the files of a hanging run when they are run one by one to find the one that hangs. */
const ONE_FILE_SILENCE_MIN = 2;
/** Types and lint have no tests whose end shows progress: these limit the whole run. */
const TYPES_LIMIT_MIN = 20;
const LINT_LIMIT_MIN = 20;
const RANK = { check: 0, test: 1, all: 2 };

const totals = { passed: 0, failed: 0, skipped: [] };

async function main(what, rest) {
  const started = Date.now();
  const added = rest.includes("--added");
  const paths = rest.filter((arg) => arg !== "--added").map(fileNamed);
  if (!(what in RANK)) throw new Problem(`what to run? one of ${Object.keys(RANK).join(" ")}`);
  const bad = paths.find((path) => path.startsWith("-") || !existsSync(path));
  if (bad !== undefined) throw new Problem(`no such test file or folder: ${bad}`);
  const files = testFiles(paths.length > 0 ? paths.map((path) => resolve(path)) : [join(ROOT, "test")]);
  const layers = LAYERS.filter((layer) => paths.length > 0 || (RANK[layer.in] <= RANK[what] && (!added || RANK[layer.in] === RANK.all)));
  if (paths.length === 0 && !added) await Promise.all([checkTypes(), checkLint(), runLayer(LAYERS[0], files)]);
  const again = added ? skippedBefore().filter((file) => !layers.includes(layerOf(file))) : [];
  for (const layer of LAYERS) if (again.length > 0) await runLayer(layer, again);
  for (const layer of layers) if (layer.name !== "pure" || paths.length > 0) await runLayer(layer, files);
  printSkipped();
  noteSkipped();
  process.stdout.write(`${((Date.now() - started) / 1000).toFixed(1)} s\n`);
  report();
  return totals.failed === 0 ? 0 : 1;
}

/** Returns the file or folder that an argument names; `.test.ts` at the end of a file may be left out. */
function fileNamed(path) {
  return !existsSync(path) && existsSync(`${path}.test.ts`) ? `${path}.test.ts` : path;
}

/** The closing line; or, for a run that sums several (.ci/run), its counts as a line of the file PARTITA_TEST_COUNTS. */
function report() {
  const { passed, failed } = totals;
  const counts = process.env.PARTITA_TEST_COUNTS;
  if (counts) appendFileSync(counts, `${passed} ${failed}\n`);
  else process.stdout.write(`${passed} passed, ${failed} failed\n`);
}

/** The test files named in PARTITA_TEST_SKIPPED that still exist. */
function skippedBefore() {
  const record = process.env.PARTITA_TEST_SKIPPED;
  if (!record || !existsSync(record)) return [];
  return [...new Set(readFileSync(record, "utf8").split("\n"))].filter((file) => file !== "" && existsSync(join(ROOT, file)));
}

function noteSkipped() {
  const record = process.env.PARTITA_TEST_SKIPPED;
  const curable = totals.skipped.filter(({ why }) => String(why).includes("scripts/test-host.sh"));
  if (record) writeFileSync(record, curable.map(({ file }) => `${file}\n`).join(""));
}

/** All test files at or below the paths, sorted, relative to the checkout. */
function testFiles(paths) {
  return paths.flatMap((path) => {
    if (!statSync(path).isDirectory()) return [relative(ROOT, path)];
    const names = readdirSync(path, { recursive: true }).filter((name) => /\.test\.tsx?$/.test(name));
    return names.sort().map((name) => relative(ROOT, join(path, name)));
  });
}

/** The layer with the longest folder that holds the file; without one, the layer to which the name of the file belongs. */
function layerOf(file) {
  const holders = LAYERS.filter(({ folder }) => folder !== undefined && file.startsWith(`${folder}/`));
  const [nearest] = holders.sort((a, b) => b.folder.length - a.folder.length);
  return nearest ?? LAYERS.find((layer) => layer.also?.test(file)) ?? LAYERS[0];
}

/** One line for each step, and all its output if it failed. */
function note(ok, what, started, text = "") {
  process.stdout.write(
    `${ok ? "ok     " : "FAILED "} ${what}  ${((Date.now() - started) / 1000).toFixed(1)} s\n${text === "" ? "" : `${text.trimEnd()}\n`}`,
  );
}

function checkTypes() {
  return checkWith("types (tsc)", join(MODULES, "typescript", "bin", "tsc"), [
    "-p",
    ROOT,
    "--incremental",
    "--tsBuildInfoFile",
    join(MODULES, ".cache", "tsc.tsbuildinfo"),
    "--pretty",
    String(Boolean(process.stdout.isTTY)),
  ]);
}

/** Format differences are long and repaired by one command, so only the files are named. */
async function checkLint() {
  const started = Date.now();
  const { changed, inOrder } = filesToLint();
  const what = `lint and format (biome)${changed === null ? "" : `: ${changed.length} files changed since`}`;
  const paths = changed === null ? ["."] : ["--no-errors-on-unmatched", "--files-ignore-unknown=true", ...changed];
  const biome = join(MODULES, "@biomejs", "biome", "bin", "biome");
  const colors = `--colors=${process.stdout.isTTY ? "force" : "off"}`;
  const { status } =
    changed?.length === 0 ? { status: 0 } : await run([biome, "check", "--max-diagnostics=1", ...paths], { limit_min: LINT_LIMIT_MIN });
  count(status === 0);
  if (status === 0) {
    inOrder();
    return note(true, what, started);
  }
  const lint = await run([biome, "lint", "--max-diagnostics=20", colors, ...paths], { limit_min: LINT_LIMIT_MIN });
  const format = await run([biome, "check", "--linter-enabled=false", "--reporter=github", "--max-diagnostics=none", ...paths], {
    limit_min: LINT_LIMIT_MIN,
  });
  const files = new Set([...format.output.matchAll(/^::error .*?file=([^,]+)/gm)].map((match) => relative(ROOT, match[1])));
  const repair =
    files.size === 0 ? "" : `${files.size} files are not formatted; \`npm run format -- FILE...\` repairs them: ${[...files].join(" ")}`;
  return note(false, what, started, `${lint.status === 0 ? "" : lint.output}${repair}`);
}

async function checkWith(what, script, args) {
  const started = Date.now();
  const { status, output } = await run([script, ...args], { limit_min: TYPES_LIMIT_MIN });
  count(status === 0);
  note(status === 0, what, started, status === 0 ? "" : output);
}

function count(ok) {
  totals[ok ? "passed" : "failed"] += 1;
}

async function runLayer(layer, files) {
  const own = files.filter((file) => layerOf(file) === layer);
  if (own.length === 0) return;
  if (layer.isolated) await freshBundles();
  const hands = dealt(own, layer.processes ?? 1);
  await Promise.all(
    hands.map(async (hand, at) => {
      const part = hands.length === 1 ? "" : ` (${at + 1} of ${hands.length})`;
      const what = hand.length === 1 ? hand[0] : `${layer.name}${part}: ${hand.length} files`;
      const hung = await runFiles(layer, hand, layer.silence_min, what);
      if (!hung || layer.isolated || hand.length === 1) return;
      process.stdout.write(`        a test hangs: running the ${hand.length} files one by one\n`);
      for (const file of hand) await runFiles(layer, [file], ONE_FILE_SILENCE_MIN, file);
    }),
  );
}

/**
 * Divides the files into this number of non-empty lists. Neighbouring files, which often take equally long, go to different
 * lists.
 */
function dealt(files, count) {
  const hands = Array.from({ length: Math.min(count, files.length) }, () => []);
  for (const [at, file] of files.entries()) hands[at % hands.length].push(file);
  return hands;
}

/** Runs test files in one node:test run and counts them. Returns whether the run hung and was ended. */
async function runFiles(layer, files, silence_min, what) {
  const started = Date.now();
  const dir = mkdtempSync(join(tmpdir(), "partita-test-"));
  const report = join(dir, "report.json");
  const endLockWatch = layer.isolated
    ? watchLoginLock(loginLock(), () => say(`removed ${loginLock()}, left by an ended login shell`))
    : undefined;
  const { status, output, timedOut } = await run(nodeTestArgs(layer, files), { silence_min, report, show: layer.isolated });
  endLockWatch?.();
  const result = existsSync(report) ? JSON.parse(readFileSync(report, "utf8")) : { passed: 0, failed: 0, skipped: [], missing: true };
  const last = lastProgress(report)?.name;
  rmSync(dir, { recursive: true, force: true });
  const why = timedOut
    ? `${what} was ended: no test ended for ${silence_min} minutes${last ? `; the last one was: ${last}` : ""}`
    : explain(what, status, result, output);
  totals.passed += result.passed;
  totals.failed += Math.max(result.failed, why === undefined ? 0 : 1);
  totals.skipped.push(...result.skipped);
  const parts = ["passed", "failed", "skipped"].map((each) => [each, each === "skipped" ? result.skipped.length : result[each]]);
  const counts = parts.filter(([each, count]) => each === "passed" || count > 0).map(([each, count]) => `${count} ${each}`);
  const ok = why === undefined && status === 0;
  note(
    ok,
    `${what}  ${counts.join(", ")}`,
    started,
    ok ? "" : [...(layer.isolated ? [] : [output.trimEnd()]), ...(why ? [why] : [])].join("\n"),
  );
  return timedOut;
}

/** Describes a failure other than failing tests; undefined if there is none. */
function explain(what, status, result, output) {
  if (result.missing) return `${what} ended with status ${status} before its tests were reported:\n${tail(output)}`;
  if (status !== 0 && result.failed === 0) return `${what} ended with status ${status} though no test failed`;
  return undefined;
}

function nodeTestArgs(layer, files) {
  const hook = join(ROOT, "scripts", "tsx-hook.mjs");
  const reporter = join(ROOT, "scripts", "reporter.mjs");
  const isolation = layer.isolated ? [`--test-concurrency=${layer.at_once}`] : ["--test-isolation=none"];
  return [
    `--import=${join(ROOT, "scripts", "compile-cache.mjs")}`,
    `--import=${hook}`,
    `--import=${join(ROOT, "scripts", "fast-check-seed.mjs")}`,
    "--disable-warning=ExperimentalWarning",
    "--test",
    ...isolation,
    `--test-reporter=${reporter}`,
    ...files,
  ];
}

let bundles;
/** A program that does not build fails only the tests that start it. */
function freshBundles() {
  bundles ??= refreshBundles();
  return bundles;
}

/**
 * The time (ms since the epoch) at which the reporter last saw a test end, and the name of the test; undefined if none has
 * ended yet.
 */
function lastProgress(report) {
  try {
    const path = `${report}.progress`;
    return { at_ms: statSync(path).mtimeMs, name: readFileSync(path, "utf8") };
  } catch {
    return undefined;
  }
}

/** Calls hang() once: after limit_min, or when no test has ended for silence_min. Returns a function that ends the watch. */
function watch({ limit_min, silence_min, report }, hang) {
  if (silence_min !== undefined)
    return watchSilence({ silence_ms: silence_min * 60_000, progress: () => lastProgress(report)?.at_ms, hang });
  const limit = setTimeout(hang, limit_min * 60_000);
  return () => clearTimeout(limit);
}

/**
 * Runs the pinned Node in a process group of its own, so that a hanging test is ended with everything it started.
 * limit_min: how long it may take; silence_min instead: how long no test of it may end.
 */
function run(args, { limit_min, silence_min, report, show = false }) {
  return new Promise((done, failed) => {
    // A resident would outlive the tests; those of residents say otherwise.
    const env = { PARTITA_RESIDENT: "no", ...process.env, ...(report ? { PARTITA_TEST_REPORT: report } : {}) };
    delete env.NODE_TEST_CONTEXT;
    delete env.PARTITA_TEST_COUNTS;
    delete env.PARTITA_TEST_SKIPPED;
    const child = spawn(RUNTIME, args, { cwd: ROOT, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    let timedOut = false;
    const end = (signal) => {
      try {
        process.kill(-child.pid, signal);
      } catch {
        // the process has already ended
      }
    };
    const endWatch = watch({ limit_min, silence_min, report }, () => {
      timedOut = true;
      end("SIGINT");
      setTimeout(end, 5_000, "SIGKILL").unref();
    });
    const interrupt = (signal) => {
      end(signal);
      setTimeout(() => process.exit(130), 2_000);
    };
    process.once("SIGINT", interrupt).once("SIGTERM", interrupt);
    const take = (data) => {
      output += data;
      if (show) process.stdout.write(data);
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.once("error", failed);
    child.once("close", (code) => {
      endWatch();
      process.off("SIGINT", interrupt).off("SIGTERM", interrupt);
      done({ status: code ?? 1, output, timedOut });
    });
  });
}

/** Skipped tests prove nothing: each is named, with its reason. */
function printSkipped() {
  const groups = Map.groupBy(totals.skipped, (each) => each.why);
  for (const [why, tests] of groups) {
    process.stdout.write(`SKIPPED ${tests.length}: ${why}\n`);
    for (const test of tests.slice(0, 10)) process.stdout.write(`          ${test.name}  (${test.file})\n`);
    if (tests.length > 10) process.stdout.write(`          and ${tests.length - 10} more\n`);
  }
}

/** Whether we run in the pinned Node, as all but scripts/ needs; `node scripts/test.mjs` may be any. */
function isOurNode() {
  if (!existsSync(RUNTIME))
    throw new Problem("the project's own Node is not installed yet: any npm script, such as `npm run check`, brings it");
  return realpathSync(process.execPath) === realpathSync(RUNTIME);
}

try {
  const [what, ...rest] = process.argv.slice(2);
  process.exitCode = isOurNode() ? await main(what, rest) : await runInOurPlace(RUNTIME, process.argv.slice(1));
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  say(error.message);
  process.exitCode = 1;
}
