// The shared parsers of the commands: options, job identifiers, destinations, times, lists, words.

import assert from "node:assert/strict";
import { test } from "node:test";
import { sizeColumn } from "#cli/columns.ts";
import { ctime, parseTimeArgument } from "#cli/dates.ts";
import { parseDestination } from "#cli/destinations.ts";
import { optionFault, scanOptions } from "#cli/getopt.ts";
import { compareJobIds, parseJobId } from "#cli/job-ids.ts";
import { completeDependencies, isAtList, isStageList, parseNamedValues, parseResources } from "#cli/value-lists.ts";
import { splitWords } from "#model/values/words.ts";

process.env["TZ"] = "UTC";

/** Options as `-f -x -l=V`, operands and faults as one text for a table. */
function scanned(line: string, letters: string, operandsFirst = true): string {
  const { events, operands, literal_from } = scanOptions(line.split(" ").filter(Boolean), letters, operandsFirst);
  const shown = events.map(
    (event) =>
      optionFault("cmd", event) ?? (event.kind === "option" && event.value !== "" ? `${event.letter}=${event.value}` : event.letter),
  );
  return [
    ...shown,
    ...operands.map((operand, index) => (literal_from !== null && index >= literal_from ? `--${operand}` : `<${operand}>`)),
  ].join(" ");
}

// biome-ignore format: one row a case
const OPTION_LINES = [
  ["-fx 12",                 "fxl:",  "f x <12>"],
  ["-lselect=2 -l a=b",      "fxl:",  "l=select=2 l=a=b"],
  ["-fl a 12 -x",            "fxl:",  "f l=a x <12>"],
  ["-f -- -x y",             "fx",    "f ---x --y"],
  ["-J -1-3 s",              "J:",    "J=-1-3 <s>"],
  ["- -f",                   "f",     "f <->"],
  ["-Z",                     "fx",    "cmd: invalid option -- 'Z'"],
  ["-fZx",                   "fx",    "f cmd: invalid option -- 'Z' x"],
  ["-u",                     "u:",    "cmd: option requires an argument -- 'u'"],
  ["-:",                     "u:",    "cmd: invalid option -- ':'"],
  ["--bad",                  "b",     "cmd: invalid option -- '-' b cmd: invalid option -- 'a' cmd: invalid option -- 'd'"],
] as const;

for (const [line, letters, expected] of OPTION_LINES) {
  test(`options: ${line}`, () => assert.equal(scanned(line, letters), expected));
}

test("options: the first operand ends them where asked for", () => assert.equal(scanned("a -f", "f", false), "<a> <-f>"));

// biome-ignore format: one row a case
const JOB_IDS = [
  ["12",             "12||"],
  ["12.svr",         "12|svr|"],
  ["12.svr.dom.org", "12|svr.dom.org|"],
  ["12@svr",         "12||svr"],
  ["12.svr@other",   "12|svr|other"],
  ["12[]",           "12[]||"],
  ["12[3].svr",      "12[3]|svr|"],
  ["12[4-6]",        "12[4-6]||"],
  ["12[1-8:7].svr",  "12[1-8:7]|svr|"],
  ["12[1,5-6]",      "12[1,5-6]||"],
  ["12x",            null],
  ["abc",            null],
  ["12.",            null],
  ["12[",            null],
  ["12[a]",          null],
  ["12.svr@",        null],
  ["",               null],
  ["-1",             null],
] as const;

for (const [text, expected] of JOB_IDS) {
  test(`job identifier: ${text}`, () => {
    const id = parseJobId(text);
    assert.equal(id === null ? null : `${id.seq}|${id.server ?? ""}|${id.at ?? ""}`, expected);
  });
}

test("job identifiers sort by number, then index", () => {
  const ids = ["10.s", "9.s", "9[10].s", "9[2].s", "9[].s"];
  assert.deepEqual(ids.sort(compareJobIds), ["9.s", "9[].s", "9[2].s", "9[10].s", "10.s"]);
});

// biome-ignore format: one row a case
const DESTINATIONS = [
  ["workq",            "workq|"],
  ["@svr",             "|svr"],
  ["workq@svr",        "workq|svr"],
  ["",                 "|"],
  ["a@b@c",            null],
  ["workq@",           null],
  ["sixteen_letters_",  null],
  ["fifteen_letters", "fifteen_letters|"],
] as const;

for (const [text, expected] of DESTINATIONS) {
  test(`destination: ${text}`, () => {
    const destination = parseDestination(text);
    assert.equal(destination === null ? null : `${destination.queue}|${destination.server ?? ""}`, expected);
  });
}

// now: Fri Nov 20 09:26:28 2026, UTC
const NOW_MS = Date.UTC(2026, 10, 20, 9, 26, 28);
// biome-ignore format: one row a case
const TIMES = [
  ["1000",            "Fri Nov 20 10:00:00 2026"],
  ["0926",            "Sat Nov 21 09:26:00 2026"],
  ["0001",            "Sat Nov 21 00:01:00 2026"],
  ["2359.59",         "Fri Nov 20 23:59:59 2026"],
  ["201000",          "Fri Nov 20 10:00:00 2026"],
  ["190000",          "Sat Dec 19 00:00:00 2026"],
  ["310000",          "Thu Dec 31 00:00:00 2026"],
  ["12312359",        "Thu Dec 31 23:59:00 2026"],
  ["01010000",        "Fri Jan  1 00:00:00 2027"],
  ["2701010000",      "Fri Jan  1 00:00:00 2027"],
  ["202001010000",    "Wed Jan  1 00:00:00 2020"],
  ["203012312359.30", "Tue Dec 31 23:59:30 2030"],
  ["1399",            null],
  ["2400",            null],
  ["tomorrow",        null],
  ["13010000",        null],
  ["02300000",        null],
  ["12345",           null],
  ["1000.99",         null],
  ["",                null],
] as const;

for (const [text, expected] of TIMES) {
  test(`time argument: ${text}`, () => {
    const epoch_s = parseTimeArgument(text, NOW_MS);
    assert.equal(epoch_s === null ? null : ctime(epoch_s), expected);
  });
}

test("dates of one quarter of an hour share their frame and not their time", () => {
  const texts = [0, 899, 900, 59, 60].map((offset) => ctime(NOW_MS / 1000 - 688 + offset));
  assert.deepEqual(
    texts.map((text) => text.slice(11, 19)),
    ["09:15:00", "09:29:59", "09:30:00", "09:15:59", "09:16:00"],
  );
});

// biome-ignore format: one row a case
const SIZES = [
  ["10mb",        "short", "10mb"],
  ["9999kb",      "short", "9999kb"],
  ["10000kb",     "short", "10mb"],
  ["51200kb",     "short", "50mb"],
  ["16384000kb",  "short", "16gb"],
  ["1048576kb",   "short", "1024mb"],
  ["100",         "short", "1kb"],
  ["1024w",       "short", "8kb"],
  ["10mb",        "G",     "1gb"],
  ["10mb",        "M",     "2mw"],
  ["4gb",         "M",     "512mw"],
  ["lots",        "short", "lots"],
] as const;

for (const [text, form, expected] of SIZES) {
  test(`size column: ${text} ${form}`, () => assert.equal(sizeColumn(text, form), expected));
}

// biome-ignore format: one row a case
const NAMED = [
  ["umask=027",                                  "umask=027"],
  ["depend=afterok:1:2,after:3,umask=22",        "depend=afterok:1:2,after:3;umask=22"],
  ["group_list=a,b,run_count=3",                 "group_list=a,b;run_count=3"],
  ['comment="a, b=c",x=1',                       "comment=a, b=c;x=1"],
  ["depend=",                                    "depend="],
  [" umask = 022 , group_list = a , b ",         "umask=022;group_list=a , b"],
  ["comment=can't run, see o'neill,umask=22",    "comment=can't run, see o'neill;umask=22"],
  [`comment="it's full" , x='a "b"'`,            `comment=it's full;x=a "b"`],
  ["comment='a' b,x=1",                          "comment='a' b;x=1"],
  [String.raw`stagein=a\,b=c@h:d,x=1`,           String.raw`stagein=a\,b=c@h:d;x=1`],
  ["umask=22,",                                  null],
  ['comment="a",',                               null],
  [",umask=22",                                  null],
  ["",                                           null],
  ["nosuch",                                     null],
  ["=4",                                         null],
  ['a="b',                                       null],
] as const;

for (const [text, expected] of NAMED) {
  test(`named values: ${text}`, () => {
    const values = parseNamedValues(text);
    assert.equal(values === null ? null : values.map(({ name, value }) => `${name}=${value}`).join(";"), expected);
  });
}

// biome-ignore format: one row a case
const RESOURCES = [
  ["ncpus=4,mem=100mb",              "ncpus=4;mem=100mb"],
  ["select=1:ncpus=2+2:mem=1gb",     "select=1:ncpus=2+2:mem=1gb"],
  ["walltime",                       "walltime="],
  ["walltime=",                      "walltime="],
  ["nodes=1:ppn=2, mem=4gb",         "nodes=1:ppn=2;mem=4gb"],
  ['select=1:vnode="a,b":ncpus=1',   'select=1:vnode="a,b":ncpus=1'],
  ['x="a b"',                        "x=a b"],
  ["preempt_targets=queue=a,queue=b", "preempt_targets=queue=a,queue=b"],
  ["ncpus=1,preempt_targets=queue=a,b, Resource_List.mem=1gb,walltime=9", "ncpus=1;preempt_targets=queue=a,b,Resource_List.mem=1gb;walltime=9"],
  ["preempt_targets=None,walltime=9", "preempt_targets=None;walltime=9"],
  ['preempt_targets="queue=a,queue=b",walltime=9', "preempt_targets=queue=a,queue=b;walltime=9"],
  ["walltime=9,queue=b",             "walltime=9;queue=b"],
  ["=4",                             "at 0"],
  ["a=1,=4",                         "at 4"],
  ["",                               "at 0"],
] as const;

for (const [text, expected] of RESOURCES) {
  test(`resource list: ${text}`, () => {
    const list = parseResources(text);
    assert.equal(
      Array.isArray(list) ? list.map(({ name, value }) => `${name}=${value}`).join(";") : `at ${(list as { at: number }).at}`,
      expected,
    );
  });
}

// biome-ignore format: one row a case
const DEPENDENCIES = [
  ["afterok:1",                  "afterok:1.svr@svr"],
  ["afterok:1:2.svr,after:3",    "afterok:1.svr@svr:2.svr@svr,after:3.svr@svr"],
  ["on:2",                       "on:2"],
  ["on:x",                       "on:x"],
  ["runone:4",                   "runone:4.svr@svr"],
  ["afterany:5[]",               "afterany:5[].svr@svr"],
  ["sometime:1",                 null],
  ["afterok",                    null],
  ["afterok:",                   null],
  ["afterok:abc",                null],
  ["",                           null],
] as const;

for (const [text, expected] of DEPENDENCIES) {
  test(`dependency: ${text}`, () => assert.equal(completeDependencies(text, "svr"), expected));
}

test("at-lists: names, hosts, one entry a host, absolute paths", () => {
  assert.equal(isAtList("a,b@h"), true);
  assert.equal(isAtList(""), false);
  assert.equal(isAtList("a@"), false);
  assert.equal(isAtList("root,root", { onePerHost: true }), false);
  assert.equal(isAtList("a@h1,a@h2,a", { onePerHost: true }), true);
  assert.equal(isAtList("/bin/sh", { onePerHost: true, absolute: true }), true);
  assert.equal(isAtList("bin/sh", { absolute: true }), false);
});

test("staging lists need a file, a host and a path", () => {
  assert.equal(isStageList("in.txt@HOST:/tmp/x.txt"), true);
  assert.equal(isStageList("a@h:/x,b@h:/y"), true);
  assert.equal(isStageList("abc"), false);
  assert.equal(isStageList("a@h"), false);
});

// biome-ignore format: one row a case
const WORDS = [
  ["-N a  -l b=c",            ["-N", "a", "-l", "b=c"]],
  ["-v 'a b' \"c d\"",        ["-v", "a b", "c d"]],
  ['-N="x y"',                ["-N=x y"]],
  ["-v R=it\\,s",             ["-v", "R=it\\,s"]],
  ["a\\ b",                   ["a b"]],
  ["-A '' x",                 ["-A", "", "x"]],
  ["-N a # -q b",             ["-N", "a", "#", "-q", "b"]],
  ["-N a#b",                  ["-N", "a#b"]],
  ["'open",                   null],
] as const;

for (const [text, expected] of WORDS) {
  test(`words: ${text}`, () => assert.deepEqual(splitWords(text), expected));
}
