// The READMEs of folders name the files: a reader who looks for the home of something reads one page instead of a listing.

import assert from "node:assert/strict";
import { basename, dirname } from "node:path";
import { test } from "node:test";
import { PROGRAMS } from "../../scripts/lib/programs.mjs";
import { allFiles } from "./tree.ts";

const FOLDERS: readonly string[] = ["src/", "native/"];
const COMMANDS = new Set(PROGRAMS.map(({ source }) => source).filter((source) => source?.startsWith("src/cli/commands/") === true));

/** A file's name in a README: `heap.ts`. A name may contain one word in capitals, which stands for any text: `TYPE-attributes.ts`. */
const NAME = /(?<![\w-])[\w-]+(?:\.d)?\.(?:tsx?|py|c|h)(?!\w)/g;

/** Returns a function that tells whether a README names a file. Commands have the name that users type, without extension. */
function namesIn(readme: string): (path: string) => boolean {
  const found = [...new Set([...readme.matchAll(NAME)].map(([name]) => name))];
  const plain = new Set(found);
  const patterns = found.filter((name) => /[A-Z]{3,}/.test(name)).map((name) => new RegExp(`^${name.replace(/[A-Z]{3,}/, "[a-z-]+")}$`));
  const words = new Set(readme.match(/[\w-]+/g));
  return (path) => {
    const name = basename(path);
    return COMMANDS.has(path) ? words.has(name.replace(/\.ts$/, "")) : plain.has(name) || patterns.some((pattern) => pattern.test(name));
  };
}

/** Returns the paths of files that are not named in the README of their folder or, without one, of the nearest folder above that has one. */
function unnamed(files: readonly { readonly path: string; readonly text: string }[]): readonly string[] {
  const readmes = new Map(files.filter(({ path }) => path.endsWith("/README.md")).map(({ path, text }) => [dirname(path), namesIn(text)]));
  return files
    .map(({ path }) => path)
    .filter((path) => !path.endsWith("/README.md"))
    .filter((path) => {
      let folder = dirname(path);
      while (!readmes.has(folder) && folder !== ".") folder = dirname(folder);
      return readmes.get(folder)?.(path) !== true;
    });
}

test("every file of src and native is named in the README of its folder", () => {
  const files = allFiles().filter(({ path }) => FOLDERS.some((folder) => path.startsWith(folder)));
  assert.deepEqual(
    unnamed(files),
    [],
    "say in one line of the README of the folder (or of the nearest folder above with one) what the file owns",
  );
});

test("a file that no README names is found", () => {
  const file = (path: string, text = "") => ({ path, text });
  const files = [
    file("src/a/README.md", "| heap.ts, b/KIND-row.ts | rows and `jobs.ts` |"),
    file("src/a/heap.ts"),
    file("src/a/heap.py"),
    file("src/a/big-heap.ts"),
    file("src/a/b/job-row.ts"),
    file("src/a/b/row.ts"),
    file("src/a/c/README.md", "nothing"),
    file("src/a/c/jobs.ts"),
    file("src/cli/commands/README.md", "| jobs/ | qdel, qsub-more |"),
    file("src/cli/commands/jobs/qdel.ts"),
    file("src/cli/commands/jobs/qsub.ts"),
  ];
  assert.deepEqual(unnamed(files), [
    "src/a/heap.py",
    "src/a/big-heap.ts",
    "src/a/b/row.ts",
    "src/a/c/jobs.ts",
    "src/cli/commands/jobs/qsub.ts",
  ]);
});
