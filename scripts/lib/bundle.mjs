// Bundles of the programs in dist/, made by esbuild. dist/bundles.json tells what they were made from, so that staleness costs a stat per source.
//
// B1. A bundle is replaced whole, by rename, and only when its contents changed: running programs are not disturbed.
// B2. A source that does not build leaves the bundles of the other programs fresh and its own as they were.
// B3. A .ts file imports a .tsx file, and a program its daemon.ts or what SEPARATE names, only dynamically; each such file becomes a bundle of its own, so
//     that nothing loads ink that does not show it, and no command a daemon that it only starts.

import {
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, relative, resolve } from "node:path";
import { completionFiles } from "../completion/shells.mjs";
import { manualPages } from "../manual/programs.mjs";
import { withLock } from "./lock.mjs";
import { buildLauncher, hasNoLauncher, isLauncherStale } from "./native.mjs";
import { DIST, MODULES, ROOT, shown } from "./paths.mjs";
import { bundleName, installation, NATIVE_PACKAGES, PROGRAMS } from "./programs.mjs";
import { Problem, say } from "./run.mjs";

const RECORD = join(DIST, "bundles.json");
const TARGET = "node24";
const OUR_OWN_SOURCES = ["scripts/lib/bundle.mjs", "scripts/lib/programs.mjs", "package.json", "package-lock.json"];

/** Rebuilds the bundles when a source is newer. Returns the names of programs that did not build. */
export async function refreshBundles({ silent = false } = {}) {
  if (!isStale()) return [];
  return withLock(join(ROOT, ".build.lock"), "building", async () => (isStale() ? buildBundles({ silent }) : []));
}

/** Builds all bundles. Returns the names of programs that did not build. */
export function buildAll() {
  return withLock(join(ROOT, ".build.lock"), "building", () => buildBundles({ silent: false, retry: true }));
}

/** Whether a source changed, appeared or vanished since the bundles were made. */
export function isStale() {
  const record = readRecord();
  if (record === undefined || record.failed.length > 0) return true;
  const programs = presentPrograms();
  if (programs.map((program) => program.name).join() !== record.programs.join()) return true;
  if (programs.some((program) => !existsSync(join(DIST, bundleName(program))))) return true;
  if (isLauncherStale()) return true;
  return Object.entries(record.sources).some(([path, mtime_ms]) => modified(path) !== mtime_ms);
}

function readRecord() {
  try {
    return JSON.parse(readFileSync(RECORD, "utf8"));
  } catch {
    return undefined;
  }
}

function modified(path) {
  return statSync(join(ROOT, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function presentPrograms() {
  return PROGRAMS.filter((program) => existsSync(join(ROOT, program.source)));
}

async function buildBundles({ silent, retry = false }) {
  const started_ms = Date.now();
  const esbuild = createRequire(join(MODULES, "esbuild", "package.json"))("esbuild");
  const programs = presentPrograms();
  const screens = new Set();
  const built = await buildGroup(esbuild, programs, screens);
  const results = built === undefined ? await buildOneByOne(esbuild, programs, screens) : built;
  results.push(...(await buildScreens(esbuild, screens)));
  const failed = results.flatMap((result) => result.failed ?? []);
  mkdirSync(DIST, { recursive: true });
  const written = writeOutputs(results);
  writeHelp();
  if (isLauncherStale() || (retry && hasNoLauncher())) buildLauncher();
  dropUnknown(results, failed);
  writeRecord(programs, results, failed, started_ms);
  if (!silent) tellWhatWasBuilt(programs, failed, written, Date.now() - started_ms);
  return failed;
}

function tellWhatWasBuilt(programs, failed, written, time_ms) {
  const left = PROGRAMS.filter((program) => !programs.includes(program)).map((program) => program.name);
  const without = left.length === 0 ? "" : `; not there yet: ${left.join(" ")}`;
  say(`bundles: ${written} written, ${programs.length - failed.length} programs up to date in ${time_ms} ms${without}`);
}

/** One esbuild call for each format. Returns undefined if any part failed. */
async function buildGroup(esbuild, programs, screens) {
  const formats = [
    ["cjs", programs.filter((program) => bundleName(program).endsWith(".cjs"))],
    ["esm", programs.filter((program) => bundleName(program).endsWith(".mjs"))],
  ];
  try {
    return await Promise.all(formats.map(([format, group]) => esbuild.build(options(group.map(entryPoint), format, screens))));
  } catch {
    return undefined;
  }
}

async function buildOneByOne(esbuild, programs, screens) {
  const results = [];
  for (const program of programs) {
    const format = bundleName(program).endsWith(".cjs") ? "cjs" : "esm";
    try {
      results.push(await esbuild.build(options([entryPoint(program)], format, screens)));
    } catch (error) {
      say(`${program.name} does not build:\n${explain(error)}`);
      results.push({
        failed: [program.name],
        sources: [program.source, ...(error.errors ?? []).map((each) => each.location?.file).filter(Boolean)],
      });
    }
  }
  return results;
}

/** Bundles of the files of B3; such a file may import another one. */
async function buildScreens(esbuild, screens) {
  const results = [];
  const done = new Set();
  for (let next = [...screens]; next.length > 0; next = [...screens].filter((path) => !done.has(path))) {
    for (const path of next) done.add(path);
    const entries = next.map((path) => ({ in: path, out: screenName(path).replace(/\.mjs$/, "") }));
    try {
      results.push(await esbuild.build(options(entries, "esm", screens)));
    } catch (error) {
      say(`screens do not build:\n${explain(error)}`);
      results.push({ failed: next.map(screenName), sources: next.map((path) => relative(ROOT, path)) });
    }
  }
  return results;
}

function explain(error) {
  if (error.errors === undefined) return String(error);
  return error.errors.map((each) => `  ${each.location ? `${each.location.file}:${each.location.line}: ` : ""}${each.text}`).join("\n");
}

function options(entryPoints, format, screens) {
  return {
    entryPoints,
    format,
    absWorkingDir: ROOT,
    outdir: DIST,
    outExtension: { ".js": format === "cjs" ? ".cjs" : ".mjs" },
    bundle: true,
    platform: "node",
    target: TARGET,
    write: false,
    metafile: true,
    logLevel: "silent",
    jsx: "automatic",
    legalComments: "none",
    external: NATIVE_PACKAGES,
    // CommonJS has no import.meta; createRequire takes a path as well.
    define: { "process.env.NODE_ENV": '"production"', ...(format === "cjs" ? { "import.meta.url": "__filename" } : {}) },
    banner:
      format === "esm"
        ? {
            js: 'import { createRequire as partitaCreateRequire } from "node:module"; const require = partitaCreateRequire(import.meta.url);',
          }
        : {},
    plugins: [entryPlugin(), screenPlugin(screens), emptyPlugin(), lateTlsPlugin()],
  };
}

/** A program whose source exports run(io) gets an entry that calls it; any other source is an entry itself. */
function entryPoint(program) {
  const source = join(ROOT, program.source);
  const isRun = /^export (async function|function|const) run\b/m.test(readFileSync(source, "utf8"));
  return { in: isRun ? `entry:${program.name}` : source, out: program.name };
}

function entryPlugin() {
  return {
    name: "entry",
    setup(build) {
      build.onResolve({ filter: /^entry:/ }, (args) => ({ path: args.path.slice("entry:".length), namespace: "entry" }));
      build.onLoad({ filter: /.*/, namespace: "entry" }, (args) => {
        const program = PROGRAMS.find((each) => each.name === args.path);
        const contents = `import { run } from "./${program.source}";\nimport { runProcess } from "./src/cli/run-process.ts";\nrunProcess("${program.name}", run);\n`;
        return { contents, resolveDir: ROOT, loader: "js" };
      });
    },
  };
}

/** Files that are large and not always wanted: screens, daemons, the store in PostgreSQL, the calls of partita and their yargs, the simulations of partita sim, certificates, TLS. */
const SEPARATE =
  /(\.tsx|\/daemon\.ts|\/open-home\.ts|\/postgres-store\.ts|\/calls\.ts|\/sim\.ts|\/what-if\.ts|\/cycle-pool\.ts|\/authority\.ts|\/hosts\/join\.ts|\/host-questions\.ts|\/user-client\.ts|\/files\/revoked\.ts)$/;

/** B3: `await import("./app.tsx")` becomes `await import("./SCREEN.mjs")`, next to the bundle. */
function screenPlugin(screens) {
  return {
    name: "screen",
    setup(build) {
      build.onResolve({ filter: SEPARATE }, async (args) => {
        if (args.kind !== "dynamic-import") return undefined;
        const path = args.path.startsWith("#") ? join(ROOT, "src", args.path.slice(1)) : resolve(args.resolveDir, args.path);
        screens.add(path);
        return { path: `./${screenName(path)}`, external: true };
      });
    },
  };
}

/** src/qmgr/shell/app.tsx -> qmgr-shell-app.mjs */
function screenName(path) {
  return `${relative(join(ROOT, "src"), path)
    .replace(/\.tsx?$/, "")
    .replaceAll("/", "-")}.mjs`;
}

/** ink asks for its development tools, which it uses in development only. */
function emptyPlugin() {
  return {
    name: "empty",
    setup(build) {
      build.onResolve({ filter: /^react-devtools-core$/ }, (args) => ({ path: args.path, namespace: "empty" }));
      build.onLoad({ filter: /.*/, namespace: "empty" }, () => ({ contents: "export default {};", loader: "js" }));
    },
  };
}

/** node-ipc imports node:tls for links over TLS, which nobody asks for here: it is loaded when one is. 22 of the 95 ms of CPU that loading the server took. */
function lateTlsPlugin() {
  return {
    name: "late-tls",
    setup(build) {
      build.onResolve({ filter: /^node:tls$/ }, ({ kind, importer, path }) =>
        kind === "import-statement" && importer.includes("/node-ipc/") ? { path, namespace: "late" } : undefined,
      );
      build.onLoad({ filter: /.*/, namespace: "late" }, ({ path }) => {
        const late = (name) => `${name}: (...args) => require(${JSON.stringify(path)}).${name}(...args)`;
        return { contents: `export default { ${late("connect")}, ${late("createServer")} };`, loader: "js" };
      });
    },
  };
}

function writeOutputs(results) {
  const owner = statSync(ROOT);
  let written = 0;
  for (const file of results.flatMap((result) => result.outputFiles ?? [])) {
    if (existsSync(file.path) && readFileSync(file.path).equals(file.contents)) continue;
    replaceFile(file.path, file.contents, owner);
    written += 1;
  }
  return written;
}

/** dist/man and dist/completion, which an installation copies to share. */
function writeHelp() {
  const owner = statSync(ROOT);
  const files = [...manualPages()].map(([path, text]) => [join("man", path), text]);
  for (const [name, text] of completionFiles()) files.push([join("completion", name), text]);
  for (const [path, text] of files) {
    const file = join(DIST, path);
    if (!existsSync(file) || readFileSync(file, "utf8") !== text) replaceFile(file, text, owner);
  }
}

/** Whoever builds, the files belong to the owner of the checkout. */
function replaceFile(path, contents, owner) {
  const half = `${path}.${process.pid}`;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(half, contents);
  if (process.getuid?.() === 0 && owner.uid !== 0) lchownSync(half, owner.uid, owner.gid);
  renameSync(half, path);
}

/** Bundles of programs that no longer exist. */
function dropUnknown(results, failed) {
  const known = new Set([basename(RECORD), ...results.flatMap((result) => result.outputFiles ?? []).map((file) => basename(file.path))]);
  for (const name of readdirSync(DIST)) {
    if (!known.has(name) && !failed.some((program) => name.startsWith(program)) && /\.(cjs|mjs)$/.test(name))
      rmSync(join(DIST, name), { force: true });
  }
}

/** A source that was written while we built is recorded as stale. */
function writeRecord(programs, results, failed, started_ms) {
  const seen = (path) => (modified(path) < started_ms ? modified(path) : 0);
  const inputs = results.flatMap((result) => [...Object.keys(result.metafile?.inputs ?? {}), ...(result.sources ?? [])]);
  const own = inputs.filter((path) => !path.includes(":") && !path.startsWith("node_modules/"));
  const paths = [...new Set([...own, ...OUR_OWN_SOURCES])].sort();
  const record = {
    programs: programs.map((program) => program.name),
    failed,
    install: installation(),
    sources: Object.fromEntries(paths.map((path) => [path, seen(path)])),
  };
  replaceFile(RECORD, JSON.stringify(record, null, 1), statSync(ROOT));
  // Launchers compare the record's own time with the sources' (scripts/launchers.mjs).
  const as_of_s = failed.length > 0 ? 0 : started_ms / 1000;
  utimesSync(RECORD, as_of_s, as_of_s);
}

/** Throws a Problem that names missing bundles. */
export function mustHaveBuilt(failed, only) {
  const concerned = only === undefined ? failed : failed.filter((name) => name === only);
  if (concerned.length > 0) throw new Problem(`no fresh bundle for ${concerned.join(", ")} in ${shown(DIST)}: see the errors above`);
}
