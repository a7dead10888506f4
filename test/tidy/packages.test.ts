// The dependencies: pinned, without download addresses, and each with its reason.

import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { test } from "node:test";
import { launchers } from "../../scripts/launchers.mjs";
import { allFiles, importsOf, ROOT, sources } from "./tree.ts";

type Packages = Record<string, { version?: string; resolved?: string; integrity?: string; optionalDependencies?: Record<string, string> }>;

const read = (path: string): string => readFileSync(`${ROOT}/${path}`, "utf8");
const lock = JSON.parse(read("package-lock.json")) as { lockfileVersion: number; packages: Packages };
const manifest = JSON.parse(read("package.json")) as Record<
  "dependencies" | "devDependencies" | "optionalDependencies",
  Record<string, string>
>;
const direct = { ...manifest.dependencies, ...manifest.optionalDependencies, ...manifest.devDependencies };

test("the lock file holds node-ipc 14.0.0 and no other: 10.1.1 to 10.1.3 and 11 of 2022 carried malware", () => {
  const versions = Object.entries(lock.packages)
    .filter(([path]) => path.endsWith("node_modules/node-ipc"))
    .map(([path, { version }]) => `${path} ${version}`);
  assert.deepEqual(versions, ["node_modules/node-ipc 14.0.0"]);
  assert.equal(direct["node-ipc"], "14.0.0");
});

test("the lock file names no download address, and a checksum for every package", () => {
  const entries = Object.entries(lock.packages).filter(([path]) => path !== "");
  const withAddress = entries.filter(([, entry]) => entry.resolved !== undefined).map(([path]) => path);
  const withoutSum = entries.filter(([, entry]) => !/^sha512-/.test(entry.integrity ?? "")).map(([path]) => path);
  assert.deepEqual({ withAddress, withoutSum }, { withAddress: [], withoutSum: [] }, "run `npm run lock`");
});

test("the lock file lists every optional package that it asks for, else npm ci refuses it", () => {
  const missing = Object.entries(lock.packages).flatMap(([path, entry]) =>
    Object.keys(entry.optionalDependencies ?? {})
      .filter((name) => !hasPackage(path, name))
      .map((name) => `${path || "package.json"} wants ${name}`),
  );
  assert.deepEqual(missing, [], "run `npm run lock`");
});

/** Node looks for a package beside the file that imports it, and then in the directories above. */
function hasPackage(from: string, name: string): boolean {
  for (let base = from; ; base = base.slice(0, Math.max(0, base.lastIndexOf("node_modules/") - 1))) {
    if (lock.packages[`${base === "" ? "" : `${base}/`}node_modules/${name}`] !== undefined) return true;
    if (base === "") return false;
  }
}

test("direct dependencies are pinned to one exact version, the pinned runtime's platform packages to the runtime's", () => {
  const loose = Object.entries(direct).filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version));
  assert.deepEqual(loose, []);
  for (const [name, version] of Object.entries(manifest.optionalDependencies)) assert.equal(version, manifest.dependencies["node"], name);
});

test("docs/dependencies.md gives the reason for every direct dependency and for no other", () => {
  const [page = ""] = read("docs/dependencies.md").split("\n## Not taken");
  const rows = [...page.matchAll(/^\| `([^`]+)`(?:, `([^`]+)`)* /gm)].flatMap((match) =>
    [...match[0].matchAll(/`([^`]+)`/g)].map((each) => each[1]),
  );
  assert.deepEqual([...rows].sort(), Object.keys(direct).sort());
});

test("imported packages are direct dependencies, and those of src not only for development", () => {
  const problems = sources("src", "test", "bench").flatMap((file) =>
    importsOf(file).flatMap(({ specifier, line, typeOnly }) => {
      if (/^(node:|#|\.)/.test(specifier)) return [];
      const name = specifier
        .split("/")
        .slice(0, specifier.startsWith("@") ? 2 : 1)
        .join("/");
      const allowed = file.path.startsWith("src/") && !typeOnly ? manifest.dependencies : direct;
      return allowed[name] === undefined ? [`${file.path}:${line} imports ${name}`] : [];
    }),
  );
  assert.deepEqual(problems, []);
});

test("the launchers in bin are those that scripts/launchers.mjs writes, and may be executed", () => {
  const written = launchers();
  const present = allFiles().filter(({ path }) => path.startsWith("bin/"));
  assert.deepEqual(present.map(({ path }) => path.slice(4)).sort(), [...written.keys()].sort(), "run `node scripts/launchers.mjs`");
  for (const { path, text } of present) {
    assert.equal(text, written.get(path.slice(4)), `${path}: run \`node scripts/launchers.mjs\``);
    assert.equal(statSync(`${ROOT}/${path}`).mode & 0o111, 0o111, `${path} is not executable`);
  }
});

test("npm scripts go through the entry that completes the installation", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  for (const [name, line] of Object.entries(scripts)) assert.equal(line, `node scripts/run.mjs ${name}`);
});
