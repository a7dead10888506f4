// Values that every attribute refuses, from whatever source: control characters, which end lines of files and mails or control
// a reader's terminal, and numbers out of range. The tests cover every row of every table, then every source: qsub, qalter,
// frames made by hand, hooks, qmgr, reservations.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { AttributeDef, AttributeType } from "#model/attribute.ts";
import { PBSE, Reject } from "#model/pbse.ts";
import { BUILTIN_RESOURCES, builtinResources } from "#model/resource-table.ts";
import { ATTRIBUTE_TABLES } from "#model/tables/tables.ts";
import { parseValue } from "#model/values/index.ts";
import { parseFrame } from "#protocol/schema-link.ts";
import { ALICE, addJob, addVnode, ask, harness, jobAttrs, outcome, ROOT } from "../harness.ts";

const CONTROL = ["a\nb", "a\tb", "a\rb", "a\u001b[2Jb", "a\u0000b", "a\u007fb"];
const HUGE = ["99999999999999", "-99999999999999", "9".repeat(30), "1e3", "0x10", "Infinity"];

/** Values that each type always refuses. */
const NEVER: { readonly [T in AttributeType]: readonly string[] } = {
  boolean: ["maybe", ...CONTROL],
  integer: HUGE,
  long64: ["9".repeat(30), "1e3", ...CONTROL],
  float: ["1e400", "NaN", ...CONTROL],
  duration: ["-1", "100000000000", "9".repeat(30), ...CONTROL],
  time: HUGE,
  size: ["-1", "99999999999999999999tb", ...CONTROL],
  string: CONTROL,
  name: ["a b", ...CONTROL],
  formula: CONTROL,
  char: CONTROL,
  keyword: CONTROL,
  hold: CONTROL,
  node_state: CONTROL,
  string_array: CONTROL,
  acl_user: CONTROL,
  acl_group: CONTROL,
  acl_host: CONTROL,
  acl_manager: CONTROL,
  resource_list: CONTROL,
  entity_limit: ["[u:alice=99999999999999999]", "[u:alice=-1]", '[u:"a\nb"=1]', '[u:"a\u001bb"=1]', ...CONTROL],
  entity_limit_res: ["[u:alice=-1]", '[u:"a\nb"=1]', ...CONTROL],
  interactive: [...HUGE.slice(2), ...CONTROL],
};

/** Free text may have several lines; a program's environment and arguments may contain everything except NUL. */
function isTaken({ characters }: AttributeDef, text: string): boolean {
  if (characters === "any") return !text.includes("\0");
  return characters === "lines" && /^[ab\n\t]*$/.test(text);
}

/** undefined: the value was refused. */
function parsed(def: AttributeDef, text: string, resource?: string): unknown {
  try {
    return parseValue(def, text, builtinResources(), resource);
  } catch (error) {
    if (error instanceof Reject) return undefined;
    throw error;
  }
}

for (const [object, table] of Object.entries(ATTRIBUTE_TABLES)) {
  test(`${object}: no attribute takes what its type never takes`, () => {
    for (const def of table.rows) {
      const resource = def.type === "entity_limit_res" ? "ncpus" : def.type === "resource_list" ? "software" : undefined;
      for (const text of NEVER[def.type]) {
        const taken = parsed(def, text, resource) !== undefined;
        assert.equal(taken, isTaken(def, text), `${def.name} = ${JSON.stringify(text)}`);
      }
    }
  });
}

test("texts that may hold more than printable characters are named one by one", () => {
  const free = Object.values(ATTRIBUTE_TABLES).flatMap(({ object, rows }) =>
    rows.flatMap(({ name, characters }) => (characters === undefined ? [] : [`${object} ${name}: ${characters}`])),
  );
  assert.deepEqual(free.sort(), [
    "backend comment: lines",
    "backend last_error: lines",
    "job Submit_arguments: any",
    "job Variable_List: any",
    "job argument_list: any",
    "job comment: lines",
    "job executable: any",
    "node comment: lines",
    "queue comment: lines",
    "resv Variable_List: any",
    "sched backfill.formula: lines",
    "sched comment: lines",
    "sched job_sort_formula: lines",
    "server comment: lines",
    "server job_sort_formula: lines",
  ]);
});

test("no resource takes a control character, a negative count, a duration without end or a nice value that the kernel has not", () => {
  const list = ATTRIBUTE_TABLES.job.byName("Resource_List") as AttributeDef;
  for (const { name, type } of BUILTIN_RESOURCES) {
    for (const text of CONTROL) assert.equal(parsed(list, text, name), undefined, `${name}=${JSON.stringify(text)}`);
    if (type === "duration") assert.equal(parsed(list, "100000000000", name), undefined, name);
  }
  for (const [text, taken] of [
    ["-20", true],
    ["19", true],
    ["20", false],
    ["-9999", false],
  ] as const)
    assert.equal(parsed(list, text, "nice") !== undefined, taken, text);
  assert.equal(parsed(list, "-1", "ncpus"), undefined);
});

/** Attribute, resource, value, refusal. */
const REFUSED: readonly (readonly [name: string, resource: string | undefined, value: string, refusal: string])[] = [
  ["Output_Path", undefined, "svr:/home/a\nb", "Output_Path"],
  ["Error_Path", undefined, "svr:/home/a\u001b[2J", "Error_Path"],
  ["Execution_Time", undefined, "99999999999999", "Execution_Time"],
  ["Execution_Time", undefined, "-1", "Execution_Time"],
  ["umask", undefined, "99999", "umask"],
  ["umask", undefined, "-1", "umask"],
  ["Resource_List", "nice", "-9999", "Resource_List.nice"],
  ["Resource_List", "walltime", "100000000000", "Resource_List.walltime"],
  ["Resource_List", "software", "a\nb", "Resource_List.software"],
  ["Mail_Users", undefined, "bob,a b", "Mail_Users"],
  ["Mail_Users", undefined, "bob\nBcc: carol", "Mail_Users"],
  ["Account_Name", undefined, "a\nb", "Account_Name"],
  ["project", undefined, "a\u0007", "project"],
  ["Shell_Path_List", undefined, "/bin/sh\n", "Shell_Path_List"],
  ["stagein", undefined, "a\nb@svr:/c", "stagein"],
  ["group_list", undefined, "us\ners", "group_list"],
  ["Job_Name", undefined, "a\nb", "Job_Name"],
];

test("the same refusal by submission and by alteration", () => {
  const h = harness();
  const id = addJob(h);
  const before = JSON.stringify(jobAttrs(h, id));
  for (const [name, resource, value, named] of REFUSED) {
    const refusal = `${PBSE.BADATVAL} Illegal attribute or resource value ${named}`;
    const attr = { name, value, ...(resource === undefined ? {} : { resource }) };
    const attrs = [{ name: "Job_Name", value: "j" }, { name: "Resource_List", resource: "select", value: "1:ncpus=1" }, attr];
    assert.equal(outcome(h, ALICE, { kind: "queue-job", destination: "", attrs, script: null }), refusal, `qsub ${name}=${value}`);
    assert.equal(outcome(h, ALICE, { kind: "modify-job", job: id, attrs: [{ ...attr, op: "=" }] }), refusal, `qalter ${name}=${value}`);
  }
  assert.equal(JSON.stringify(jobAttrs(h, id)), before);
});

test("what users really send is taken: variables of several lines, colours, tabs in arguments", () => {
  const h = harness();
  const attrs = [
    { name: "Job_Name", value: "j" },
    { name: "Variable_List", value: "PBS_O_HOME=/home/a,BASH_FUNC_f%%=() {\n\techo a\n},PS1=\u001b[31m$" },
    { name: "Submit_arguments", value: "-v A=1\n2 -- /bin/echo a\tb" },
    { name: "executable", value: "<jsdl-hpcpa:Executable>/bin/echo</jsdl-hpcpa:Executable>" },
    { name: "argument_list", value: "<jsdl-hpcpa:Argument>a\tb\nc</jsdl-hpcpa:Argument>" },
    { name: "Mail_Users", value: "bob@far.org, carol" },
    { name: "umask", value: "0022" },
    { name: "Resource_List", resource: "walltime", value: "876000:00:00" },
  ];
  assert.equal(ask(h, ALICE, { kind: "queue-job", destination: "", attrs, script: null })?.ok, true);
});

test("a manager's values are checked likewise", () => {
  const h = harness();
  addVnode(h, "n1");
  const set = (object: "server" | "queue" | "node", name: string, attr: string, value: string): string =>
    outcome(h, ROOT, { kind: "manager", verb: "set", object, name, attrs: [{ name: attr, op: "=", value }] });
  const bad = `${PBSE.BADATVAL} Illegal attribute or resource value`;
  assert.equal(set("server", "", "mail_from", "-O x"), bad);
  assert.equal(set("server", "", "mail_from", "a b"), bad);
  assert.equal(set("server", "", "default_qsub_arguments", "-l\nx"), bad);
  assert.equal(set("server", "", "scheduler_iteration", "99999999999"), bad);
  assert.equal(set("queue", "workq", "route_destinations", "a\nb"), bad);
  assert.equal(set("queue", "workq", "kill_delay", "99999999999"), bad);
  assert.equal(set("node", "n1", "comment", "a\u001b[2J"), bad);
  assert.equal(set("node", "n1", "comment", "two\nlines"), "ok");
});

test("reservations: times and recipients", () => {
  const h = harness();
  const resv = (name: string, value: string): string =>
    outcome(h, ALICE, {
      kind: "submit-resv",
      attrs: [
        { name: "reserve_start", value: "1795170000" },
        { name: "reserve_duration", value: "600" },
        { name: "Resource_List", resource: "select", value: "1:ncpus=1" },
        { name, value },
      ],
    } as never);
  const bad = `${PBSE.BADATVAL} Illegal attribute or resource value`;
  assert.equal(resv("Mail_Users", "a b"), `${bad} Mail_Users`);
  assert.equal(resv("reserve_duration", "100000000000"), `${bad} reserve_duration`);
  assert.equal(resv("reserve_count", "99999999999"), `${bad} reserve_count`);
  assert.equal(resv("Authorized_Users", "a\nb"), `${bad} Authorized_Users`);
  assert.equal(resv("reserve_end", "99999999999999"), `${PBSE.BADTSPEC} Bad time specification(s)`);
});

test("what daemons say for people may quote a user's text: control characters are replaced, lines stay", () => {
  const said = parseFrame("sched-to-server", "sched-fault", { fault: "no such\u001b[2J file\n\tx" });
  assert.deepEqual(said.ok && said.frame.data, { fault: "no such?[2J file\n\tx" });
  const obit = { job: "1.svr", run_count: 1, exit_status: 0, used: {}, message: "Unable to copy file a\u0007b" };
  const heard = parseFrame("mom-to-server", "mom-obit", obit);
  assert.equal(heard.ok && (heard.frame.data as { message?: string }).message, "Unable to copy file a?b", JSON.stringify(heard));
});
