// The manual pages: every program has one, roff takes all of them without a warning, and nothing of the tables that they are made from is missing.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { PROGRAMS } from "../../scripts/lib/programs.mjs";
import { partitaCalls } from "../../scripts/manual/partita-calls.mjs";
import { manualPages } from "../../scripts/manual/programs.mjs";
import { escapeText, inline, roff } from "../../scripts/manual/roff.mjs";

const pages = manualPages();
const text = (path: string): string => pages.get(path) ?? assert.fail(`there is no page ${path}`);
const hasGroff = spawnSync("groff", ["--version"]).status === 0;
/** The text of a page as it is shown on a wide terminal. */
function shown(path: string): string {
  const { stdout, stderr } = spawnSync("groff", ["-man", "-ww", "-Tutf8", "-Kutf8", "-P-cbou", "-rLL=400n"], {
    input: text(path),
    encoding: "utf8",
  });
  assert.equal(stderr, "", path);
  return stdout;
}

test("every program that users or administrators call has a page, with its name, purpose, usage and description", () => {
  const names = PROGRAMS.filter(({ kind }) => kind !== "helper").map(({ name }) => name);
  const found = [...pages.keys()].filter((path) => /^man[18]\//.test(path)).map((path) => /\/(.*)\.\dB$/.exec(path)?.[1]);
  assert.deepEqual(found.toSorted(), names.toSorted());
  for (const [path, page] of pages) {
    if (!/^man[18]\//.test(path) || page.startsWith(".so ")) continue;
    const name = /\/(.*)\.\dB$/.exec(path)?.[1] ?? "";
    const [, purpose = "", usage = "", description = ""] =
      /\.SH NAME\n[^ ]+ \\- (.*)\n\.SH SYNOPSIS\n\.nf\n([\s\S]*?)\n\.fi\n\.SH DESCRIPTION\n([\s\S]*?)\n\.SH EXIT STATUS\n/.exec(page) ?? [];
    assert.ok(purpose.length > 5, `${path}: no purpose`);
    assert.ok(usage.includes(escapeText(name, true)), `${path}: no usage`);
    assert.ok(!usage.includes("[operand ...]") || name === "partita", `${path}: no usage was found in the source`);
    assert.ok(description.length > 40, `${path}: docs/ says nothing about it`);
  }
});

test("pages of formats, attributes and resources have contents", () => {
  const short = [...pages].filter(([path, page]) => /^man[57]\//.test(path) && page.length < 1500).map(([path]) => path);
  assert.deepEqual(short, []);
});

test("a page that refers to another one refers to a page that exists", () => {
  for (const [path, page] of pages) {
    const other = /^\.so (\S+)/.exec(page)?.[1];
    if (other !== undefined) assert.ok(pages.has(other), `${path}: ${other}`);
    const seeAlso = page.split(".SH SEE ALSO\n")[1] ?? "";
    for (const [, name, number] of seeAlso.matchAll(/([\w.]+)\((\d)B\)/g)) text(`man${number}/${name}.${number}B`);
  }
});

test("groff has no warning about any page", { skip: hasGroff ? false : "groff is not installed" }, () => {
  for (const [path, page] of pages) {
    // As narrow as a terminal usually is. A word that does not fit there is a matter of the terminal.
    const { status, stderr } = spawnSync("groff", ["-man", "-ww", "-Wbreak", "-Tutf8", "-Kutf8", "-z", "-rLL=80n"], {
      input: page.startsWith(".so ") ? text(page.slice(4).trim()) : page,
      encoding: "utf8",
    });
    assert.equal(stderr, "", path);
    assert.equal(status, 0, path);
  }
});

test("text is shown as it was written, whatever roff means by it", { skip: hasGroff ? false : "groff is not installed" }, () => {
  const words = ["`.TH`", "\\n", "'quoted'", "`a-b`", "~user", "x^2", "`^array_index^`", "Ä", "**bold**", "`%-15.15s`", "[link](page.md)"];
  const input = `.TH X 1\n${roff(`${words.join("\n")}\n\n- .one\n- 'two'\n\n| a | b |\n|---|---|\n| | .three |`).join("\n")}\n`;
  const { stdout, stderr } = spawnSync("groff", ["-man", "-ww", "-Tutf8", "-Kutf8", "-P-cbou"], { input, encoding: "utf8" });
  assert.equal(stderr, "");
  const seen = stdout.replaceAll(/\s+/g, " ");
  assert.ok(seen.includes(".TH \\n 'quoted' a-b ~user x^2 ^array_index^ Ä bold %-15.15s link"), seen);
  assert.ok(seen.includes("• .one • 'two' .three"), seen);
  assert.equal(inline("*it* and 2*3*4"), "\\fIit\\fR and 2*3*4");
});

test("the pages of attributes and of sched_config have every row of their tables", {
  skip: hasGroff ? false : "groff is not installed",
}, () => {
  const server = shown("man7/pbs_server_attributes.7B");
  const rows = readFileSync("docs/reference/attributes.md", "utf8").split(/^## /m)[2] ?? "";
  const names = [...rows.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
  assert.ok(names.length > 100, `only ${names.length} attributes found`);
  for (const name of names) assert.match(server, new RegExp(`^ +${name}\\b`, "m"));
  const config = shown("man5/sched_config.5B");
  for (const name of ["strict_ordering", "fairshare_usage_res", "job_sort_key"]) assert.match(config, new RegExp(`^ +${name}\\b`, "m"));
});

test("the page of partita has every call and every option that its help shows", () => {
  const help = (...call: readonly string[]): string => {
    const { stdout } = spawnSync(process.execPath, ["--no-warnings", "src/admin/main.ts", ...call, "--help"], {
      encoding: "utf8",
      env: { ...process.env, COLUMNS: "200" },
    });
    return stdout;
  };
  const shownCalls = [...help().matchAll(/^ {2}partita ([a-z][\w-]*)/gm)].map(([, call]) => call ?? "");
  assert.ok(shownCalls.length > 25, `only ${shownCalls.length} calls found`);
  const calls = partitaCalls();
  const top = new Set(calls.map(({ command }) => command.split(" ")[0]));
  assert.deepEqual([...top].toSorted(), [...shownCalls].toSorted());
  const page = text("man1/partita.1B");
  for (const { command } of calls) assert.ok(page.includes(`\\fBpartita ${escapeText(command, true)}\\fR`), command);
  // One call with many options, one of a module, and one verb stand for all.
  for (const call of ["join", "tune", "cert token"]) {
    const told = calls.find(({ command }) => command === call || command.startsWith(`${call} `));
    const options = [...help(...call.split(" ")).matchAll(/^ +(?:-\w, )?--([a-z]+)/gm)].map(([, option]) => option);
    const own = options.filter((option) => !["home", "version", "help"].includes(option ?? ""));
    assert.deepEqual(
      told?.options
        .filter(({ isOption }) => isOption)
        .map(({ name }) => name)
        .toSorted(),
      own.toSorted(),
      call,
    );
  }
});
