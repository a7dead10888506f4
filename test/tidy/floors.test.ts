// The floors of the source tree: few files in a folder, imports that go down, no two folders that import each other. rules.ts
// lists the exceptions.

import assert from "node:assert/strict";
import { dirname } from "node:path";
import { test } from "node:test";
import { floorsOf } from "../../scripts/house/folders.mjs";
import { arrowsUp, foldersByFiles, mutualPairs } from "../../scripts/house/imports.mjs";
import { FOLDER_FILES, HEAPS, MUTUAL, WITHOUT_FLOORS } from "./rules.ts";
import { allFiles, importsOf, resolveImport, sources } from "./tree.ts";

type Imports = readonly { readonly path: string; readonly imports: readonly { readonly path: string; readonly typeOnly: boolean }[] }[];

const house: Imports = sources("src").map((file) => ({
  path: file.path,
  imports: importsOf(file).flatMap(({ specifier, typeOnly }) => {
    const path = resolveImport(file.path, specifier);
    return path === undefined ? [] : [{ path, typeOnly }];
  }),
}));

test("a folder holds few files, so that a reader need not search it", () => {
  const folders: readonly { readonly folder: string; readonly files: number }[] = foldersByFiles(sources("src", "test", "bench"));
  const heaps = folders.filter(({ files }) => files > FOLDER_FILES).map(({ folder }) => folder);
  assert.deepEqual(
    heaps.sort(),
    [...HEAPS].sort(),
    `a folder holds at most ${FOLDER_FILES} files: give it floors, or take it out of HEAPS`,
  );
});

test("no two folders import each other", () => {
  assert.deepEqual(mutualPairs(house), [...MUTUAL].sort(), "move what both need below them, or take the pair out of MUTUAL");
});

test("the README of a folder with subfolders draws them as floors, and imports go down", () => {
  const folders = [...new Set(house.map(({ path }) => dirname(path)))];
  const tops = [
    ...new Set(folders.filter((folder) => folder.split("/").length > 2).map((folder) => folder.split("/").slice(0, 2).join("/"))),
  ];
  const texts = new Map(allFiles().map(({ path, text }) => [path, text]));
  const problems = tops.flatMap((top): readonly string[] => {
    const floors: readonly string[] | undefined = floorsOf(texts.get(`${top}/README.md`) ?? "");
    if (floors === undefined) return [`${top}/README.md draws no floors`];
    const there = new Set(folders.filter((folder) => folder.startsWith(`${top}/`)).map((folder) => folder.split("/")[2] ?? ""));
    return [
      ...[...there].filter((name) => !floors.includes(name)).map((name) => `${top}/README.md does not draw ${name}`),
      ...floors.filter((name) => name !== "." && !there.has(name)).map((name) => `${top}/README.md draws ${name}, which is not there`),
      ...(arrowsUp(house, top, new Map([[top, floors]])) ?? []),
    ];
  });
  const expected = WITHOUT_FLOORS.map((top) => `${top}/README.md draws no floors`);
  assert.deepEqual(problems.sort(), [...expected].sort());
});
