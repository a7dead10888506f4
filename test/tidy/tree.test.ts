// The form of the tree: files are used, named, headed and sized as CONTRIBUTING.md says, and nothing is left over from the work
// on them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PROGRAMS } from "../../scripts/lib/programs.mjs";
import { ENTRIES, FILE_LINES, LINE_LENGTH, LONG_TABLES, README_LINES } from "./rules.ts";
import { allFiles, codeOf, importsOf, resolveImport, type SourceFile, sources } from "./tree.ts";

const THIS_FOLDER = "test/tidy/";

/** One message for each line of a file to which the check objects. */
function eachLine(files: readonly SourceFile[], check: (line: string, file: SourceFile) => string | undefined): readonly string[] {
  return files.flatMap((file) =>
    file.lines.flatMap((line, index) => {
      const problem = check(line, file);
      return problem === undefined ? [] : [`${file.path}:${index + 1}: ${problem}`];
    }),
  );
}

test("every folder of src has a README.md of at most a screen", () => {
  const files = new Map(allFiles().map((file) => [file.path, file]));
  const folders = new Set(sources("src").map(({ path }) => path.split("/").slice(0, -1).join("/")));
  const problems = [...folders].sort().flatMap((folder) => {
    const readme = files.get(`${folder}/README.md`);
    if (readme !== undefined) {
      const count = readme.lines.length - 1;
      return count > README_LINES ? [`${readme.path} has ${count} lines: ${README_LINES} is a screen`] : [];
    }
    const parts = folder.split("/");
    const name = parts.at(-1) ?? "";
    const above = files.get(`${parts.slice(0, -1).join("/")}/README.md`);
    if (parts.length > 2 && above?.text.includes(`${name}/`) === true) return [];
    return [`${folder} has no README.md${parts.length > 2 ? ` (a line about \`${name}/\` in the README.md above it is enough)` : ""}`];
  });
  assert.deepEqual(problems, []);
});

test("no source file is dead: each is an entry or imported by one that is not a test", () => {
  const entries = new Set([...PROGRAMS.map(({ source }) => source), ...ENTRIES]);
  const imported = new Set(
    sources("src", "bench").flatMap((file) => importsOf(file).map(({ specifier }) => resolveImport(file.path, specifier))),
  );
  const dead = sources("src", "bench")
    .map(({ path }) => path)
    .filter((path) => !entries.has(path) && !imported.has(path) && !path.endsWith(".d.ts") && path !== "src/cli/run-process.ts");
  assert.deepEqual(dead, [], "remove the file, use it, or name it in ENTRIES of test/tidy/rules.ts");
});

test("no helper of the tests is dead", () => {
  const imported = new Set(
    sources("test", "bench").flatMap((file) => importsOf(file).map(({ specifier }) => resolveImport(file.path, specifier))),
  );
  const texts = sources("test", "bench").map(({ text }) => text);
  const dead = sources("test")
    .map(({ path }) => path)
    .filter((path) => !/\.test\.tsx?$/.test(path) && !imported.has(path))
    .filter((path) => !texts.some((text) => text.includes(path.split("/").at(-1) ?? path)));
  assert.deepEqual(dead, []);
});

test("files are named in kebab-case and folders too, but for commands, which have the name that users type", () => {
  const commands = new Set(PROGRAMS.map(({ source }) => source));
  const bad = sources("src", "test", "bench")
    .map(({ path }) => path)
    .filter((path) => !commands.has(path) && !path.split("/").every((part) => /^[a-z0-9]+(-[a-z0-9]+)*(\.test|\.d)?(\.tsx?)?$/.test(part)));
  assert.deepEqual(bad, []);
});

test("commands of src/cli/commands have a launcher", () => {
  const known = new Set(PROGRAMS.map(({ source }) => source));
  const unknown = sources("src/cli/commands").filter(({ path }) => !known.has(path));
  assert.deepEqual(
    unknown.map(({ path }) => path),
    [],
    "add the command to scripts/lib/programs.mjs and run `node scripts/launchers.mjs`; helpers of commands lie in src/cli",
  );
});

test("every source file opens with a comment that says what it owns", () => {
  const bare = sources("src", "bench").filter(({ text }) => !/^(#!.*\n)?\s*\/[/*]/.test(text));
  assert.deepEqual(
    bare.map(({ path }) => path),
    [],
  );
});

test("no line of a source file is too long and no file holds two nouns", () => {
  const code = sources("src", "test", "bench", "scripts");
  const lines = eachLine(code, (line) => {
    const { length } = line.replace(/"[^"]*"|'[^']*'|`[^`]*`/g, '""');
    return length > LINE_LENGTH ? `${length} characters without its texts, ${LINE_LENGTH} is the limit` : undefined;
  });
  const long = sources("src")
    .filter(({ path, lines: { length } }) => length > FILE_LINES && !LONG_TABLES.includes(path))
    .map(
      ({ path, lines: { length } }) =>
        `${path} has ${length} lines: which two nouns does it hold? (a table: LONG_TABLES in test/tidy/rules.ts)`,
    );
  assert.deepEqual([...lines, ...long], []);
});

/** Leftovers of the work on the code. */
const MARKERS: readonly (readonly [expression: RegExp, where: readonly string[]])[] = [
  [/\b(TODO|FIXME|HACK|XXX|WIP)\b/, ["src", "test", "bench"]],
  [/\b(test|it|describe)\.(only|todo)\b|\bt\.todo\(|\btodo: ?true|\bonly: ?true/, ["test"]],
];

test("nothing is left over from debugging", () => {
  const markers = MARKERS.flatMap(([expression, where]) =>
    eachLine(
      sources(...where).filter(({ path }) => !path.startsWith(THIS_FOLDER)),
      (line) => expression.exec(line)?.[0],
    ),
  );
  const code = sources("src").flatMap((file) =>
    codeOf(file.text)
      .split("\n")
      .flatMap((line, index) => {
        const found = /\bconsole\.\w+|\bdebugger\b/.exec(line)?.[0];
        return found === undefined ? [] : [`${file.path}:${index + 1}: ${found}`];
      }),
  );
  assert.deepEqual([...markers, ...code], []);
});

test("no file names a package registry or a path of the machine it was written on", () => {
  const machine = /(?<![\w.~-])\/work\/|\/tmp\/brief|\/root\/\.|registry\.[a-z]+\.[a-z]+|npmjs\.(org|com)/;
  const files = allFiles().filter(({ path }) => !path.startsWith(THIS_FOLDER));
  const problems = eachLine(files, (line) => machine.exec(line)?.[0]);
  assert.deepEqual(problems, []);
});

test("titles of tests are unique and say something", () => {
  const titles = sources("test").flatMap((file) =>
    [...file.text.matchAll(/^(?:test|it)\(\s*(["'`])((?:\\.|(?!\1).)*)\1/gm)].map((match) => ({ path: file.path, title: match[2] ?? "" })),
  );
  const seen = new Map<string, string>();
  const problems: string[] = [];
  for (const { path, title } of titles) {
    if (!title.includes("${") && seen.has(title)) problems.push(`"${title}" is in ${seen.get(title)} and in ${path}`);
    if (!title.includes("${") && title.trim().split(/\s+/).length < 2) problems.push(`"${title}" in ${path}: say what holds`);
    seen.set(title, path);
  }
  assert.deepEqual(problems, []);
});

test("every test file has a test that is not commented out", () => {
  const empty = sources("test").filter(({ path, text }) => /\.test\.tsx?$/.test(path) && !/\b(test|it)\s*\(/.test(codeOf(text)));
  assert.deepEqual(
    empty.map(({ path }) => path),
    [],
  );
});
