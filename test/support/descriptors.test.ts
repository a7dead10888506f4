import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { foreignDescriptors } from "#support/descriptors.ts";

const CLOEXEC = 0o2000000;

test("foreign is what Node does not open itself, and what a program started later would get", () => {
  const open = [
    { fd: 3, target: "anon_inode:[eventpoll]", flags: CLOEXEC | 2 },
    { fd: 4, target: "pipe:[1]", flags: CLOEXEC },
    { fd: 5, target: "pipe:[1]", flags: CLOEXEC | 1 },
    { fd: 6, target: "/dev/null", flags: CLOEXEC },
    { fd: 7, target: "/etc/shadow", flags: CLOEXEC },
    { fd: 8, target: "socket:[2]", flags: CLOEXEC | 2 },
    { fd: 9, target: "pipe:[3]", flags: CLOEXEC | 1 },
    { fd: 10, target: "pipe:[4]", flags: CLOEXEC | 1 },
    { fd: 11, target: "pipe:[4]", flags: CLOEXEC | 1 },
    { fd: 12, target: "anon_inode:[eventfd]", flags: 2 },
    { fd: 13, target: "/tmp/log", flags: CLOEXEC | 1 },
  ];
  assert.deepEqual(foreignDescriptors(open, new Set([13])), [7, 8, 9, 10, 11, 12]);
});

test("a program with descriptors 3 to 300, with gaps, has none of them left, works on, and hands none on", () => {
  const directory = mkdtempSync(join(tmpdir(), "partita-descriptors-"));
  const file = openSync(join(directory, "secret"), "w");
  try {
    const program = join(directory, "program.ts");
    const library = new URL("../../src/support/descriptors.ts", import.meta.url).href;
    writeFileSync(
      program,
      `import { closeForeignDescriptors } from ${JSON.stringify(library)};
closeForeignDescriptors(5);
import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
const show = "ls -l /proc/self/fd | grep -o '[0-9]* -> .*secret' | sort -n; true";
console.log("own", spawnSync("sh", ["-c", show.replace("self", String(process.pid))], { encoding: "utf8" }).stdout.trim());
console.log("child", spawnSync("sh", ["-c", show], { encoding: "utf8" }).stdout.trim());
console.log((await readFile("/proc/self/stat", "utf8")).length > 0);
`,
    );
    const stdio = Array.from({ length: 301 }, (_, fd) => (fd < 3 ? "pipe" : fd % 7 === 0 ? "ignore" : file));
    const ran = spawnSync(process.execPath, [program], { encoding: "utf8", stdio: stdio as never });
    assert.equal(ran.stdout, `own 5 -> ${directory}/secret\nchild \ntrue\n`, ran.stderr);
  } finally {
    closeSync(file);
    rmSync(directory, { recursive: true });
  }
});
