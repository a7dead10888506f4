// The candidates of the admin shell at the cursor, and the effects of keys on the line.

import assert from "node:assert/strict";
import { test } from "node:test";
import { commonPrefix, complete } from "#qmgr/shell/completion.ts";
import { type EditorKey, EMPTY_EDITOR, keysOfText, pressKey } from "#qmgr/shell/editor.ts";

const known = { queue: ["workq", "work2"], node: ["n1"], sched: ["default", "s1"], resource: ["lic"] };

const OFFERS: readonly (readonly [line: string, wanted: readonly string[]])[] = [
  ["cr", ["create"]],
  ["create s", ["sched"]],
  ["set q", ["queue"]],
  ["set queue wo", ["workq", "work2"]],
  ["set queue workq enab", ["enabled"]],
  ["set queue workq enabled=", ["True", "False"]],
  ["set queue workq enabled=T", ["True"]],
  ["set queue workq started=True,ena", ["enabled"]],
  ["set queue workq resources_max.wallt", ["walltime"]],
  ["set queue workq resources_max.li", ["lic"]],
  ["set server default_que", ["default_queue"]],
  ["set server default_queue = work", ["workq", "work2"]],
  ["set sched s1 parti", ["partition"]],
  ["create resource r type=str", ["string", "string_array"]],
  ["list node n", ["n1"]],
  ["frobnicate queue ", []],
  ["set queue workq enabled ", ["=", "+=", "-="]],
  ["set queue workq enabled=True ", []],
  ["list queue workq enabled ", []],
  ["list queue workq,wor", ["workq", "work2"]],
  ["list queue workq@", []],
  ["delete queue workq ", []],
  ["active s", ["server", "sched"]],
  ["import hook h application/x-python ", []],
  ["help set ", []],
  ["set server comment='a b' , default_queue='wo", []],
];

test("the shell completes verbs, objects, names, attributes, resources and values", () => {
  for (const [line, wanted] of OFFERS) {
    const { start, candidates } = complete(line, line.length, known);
    assert.deepEqual(candidates, wanted, line);
    for (const candidate of candidates)
      assert.ok(candidate.toLowerCase().startsWith(line.slice(start).toLowerCase()), `${line}: ${candidate}`);
  }
});

test("the shell tells what an attribute is while it is typed", () => {
  assert.match(complete("set queue workq enabled", 23, known).help, /^enabled \(boolean/);
});

function press(...keys: readonly (string | EditorKey)[]): string {
  const history = ["first", "second"];
  let state = EMPTY_EDITOR;
  for (const key of keys) state = pressKey(state, typeof key === "string" ? { kind: "text", text: key } : key, history, known);
  return `${state.text.slice(0, state.cursor)}|${state.text.slice(state.cursor)}`;
}

const KEYS: readonly (readonly [name: string, seen: string, wanted: string])[] = [
  ["text goes in at the cursor", press("ac", { kind: "left" }, "b"), "ab|c"],
  ["a single candidate is taken with a blank", press("cr", { kind: "tab" }), "create |"],
  ["several candidates give their common beginning", press("set queue w", { kind: "tab" }), "set queue work|"],
  [
    "up and down walk the history and come back to the draft",
    press("dr", { kind: "up" }, { kind: "up" }, { kind: "down" }, { kind: "down" }),
    "dr|",
  ],
  ["a word is deleted backwards", press("set queue workq", { kind: "kill-word" }), "set queue |"],
  ["the rest of the line is deleted", press("abc", { kind: "home" }, { kind: "right" }, { kind: "kill-rest" }), "a|"],
  ["backspace at the start does nothing", press("a", { kind: "home" }, { kind: "backspace" }), "|a"],
];

test("keys change the line of the shell", () => {
  for (const [name, seen, wanted] of KEYS) assert.equal(seen, wanted, name);
  assert.equal(commonPrefix(["abc", "abd"]), "ab");
});

test("text that comes together with its line ends is text and Enter, however the terminal writes line ends", () => {
  const told = (text: string): string =>
    keysOfText(text)
      .map((key) => (key.kind === "text" ? key.text : `<${key.kind}>`))
      .join("");
  assert.equal(told("list server\r"), "list server<enter>");
  assert.equal(told("a\tb\nc\r\n\rd"), "a b<enter>c<enter><enter>d");
  assert.deepEqual(keysOfText(""), []);
});
