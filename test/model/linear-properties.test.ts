// Every parser of user input takes time in proportion to its text. Each parses texts of n and of 8 n characters, and a million
// characters of its worst text. Time is processor time, the best of several rounds. A quadratic parser would take 64 times as
// long.

import assert from "node:assert/strict";
import { test } from "node:test";
import { completeDependencies, isAtList, isStageList, parseResources, splitUnquoted } from "#cli/value-lists.ts";
import { type HookInput, readAnswer } from "#hooks/run/hook-input.ts";
import { withChanges } from "#hooks/run/merge.ts";
import { parseArrayIndices, parseIndexList } from "#model/array-indices.ts";
import { attributeOf } from "#model/attribute.ts";
import { parseDependencies } from "#model/depend.ts";
import { parseDestination } from "#model/destination.ts";
import { JOB_FORMULA_NAMES, readFormula } from "#model/formula/formula.ts";
import { parseJobId, parseResvId } from "#model/job-id.ts";
import { Reject } from "#model/pbse.ts";
import { parseRule } from "#model/recurrence.ts";
import { parseExecHost } from "#model/request/exec-host.ts";
import { parseExecVnode } from "#model/request/exec-vnode.ts";
import { resolveRequest } from "#model/request/job-request.ts";
import { parseNodesSpec } from "#model/request/nodes-spec.ts";
import { parsePlace } from "#model/request/place.ts";
import { checkSelect, parseSelect } from "#model/request/select.ts";
import { builtinResources } from "#model/resource-table.ts";
import { JOB_ATTRIBUTES } from "#model/tables/job-attributes.ts";
import { SERVER_ATTRIBUTES } from "#model/tables/server-attributes.ts";
import { combineValue, parseValue, renderValue } from "#model/values/index.ts";
import { jobNameFault } from "#model/values/job-name.ts";
import { parseStageItem } from "#model/values/stage-item.ts";
import { removeFromList, splitList } from "#model/values/string-array.ts";
import { variableList } from "#mom/job/environment.ts";
import { parseRequest } from "#protocol/schema.ts";
import { decodeFrame, frameDecoder } from "#protocol/wire/frame.ts";
import { attributeLookup } from "#qmgr/language/attribute-lookup.ts";
import { parseRequest as parseQmgr } from "#qmgr/language/grammar.ts";

const resources = builtinResources();
const times = (count: number, make: (at: number) => string, separator: string): string =>
  Array.from({ length: count }, (_, at) => make(at)).join(separator);
/** Texts of about n characters that are hard for one parser or another. */
const WORST: { readonly [name: string]: (n: number) => string } = {
  "one letter": (n) => "a".repeat(n),
  digits: (n) => "1".repeat(n),
  blanks: (n) => `a${" ".repeat(n)}b`,
  commas: (n) => ",".repeat(n),
  "short elements": (n) => "a,".repeat(n / 2),
  "blank elements": (n) => " a ,".repeat(n / 4),
  colons: (n) => "a:".repeat(n / 2),
  "open brackets": (n) => "[".repeat(n),
  "pairs of brackets": (n) => "[]:".repeat(n / 3),
  plus: (n) => "1+".repeat(n / 2),
  chunks: (n) => times(n / 10, () => "1:ncpus=1", "+"),
  pairs: (n) => `1:${times(n / 12, (at) => `r${at}=1`, ":")}`,
  parts: (n) => times(n / 12, (at) => `(v${at}:ncpus=1)`, "+"),
  "parts of one vnode": (n) => `(v:${times(n / 12, (at) => `r${at}=1`, ":")})`,
  ids: (n) => `afterok:${times(n / 8, (at) => String(1_000_000 + at), ":")}`,
  "ids of arrays": (n) => `afterok:${times(n / 10, (at) => `${1_000_000 + at}[]`, ":")}`,
  quotes: (n) => `a=${"'\"".repeat(n / 2)}`,
  backslashes: (n) => "\\".repeat(n),
  "backslashes and blanks": (n) => "\\ ,".repeat(n / 3),
  at: (n) => "a@".repeat(n / 2),
  users: (n) => times(n / 12, (at) => `u${at}@h${at}`, ","),
  limits: (n) => times(n / 12, (at) => `[u:u${at}=1]`, ","),
  days: (n) => `FREQ=DAILY;COUNT=1;BYDAY=${times(n / 3, () => "MO", ",")}`,
  dots: (n) => `1.${"a.".repeat(n / 2)}!`,
  variables: (n) => times(n / 12, (at) => `V${at}=x\\,y`, ","),
  sums: (n) => `ncpus${"+ncpus".repeat(n / 6)}`,
  parentheses: (n) => `${"(".repeat(n / 2)}1${")".repeat(n / 2)}`,
  assignments: (n) => times(n / 16, (at) => `comment = c${1000 + at}`, ","),
  slashes: (n) => "/".repeat(n),
};

const job = (name: string) => attributeOf(JOB_ATTRIBUTES, name);
const server = (name: string) => attributeOf(SERVER_ATTRIBUTES, name);
const PARSERS: { readonly [name: string]: (text: string) => unknown } = {
  dependencies: (text) => parseDependencies([text], "svr"),
  "dependencies, completed": (text) => completeDependencies(text, "svr"),
  select: (text) => checkSelect(parseSelect(text), resources),
  nodes: (text) => parseNodesSpec(text, { ncpus: 1 }, resources),
  request: (text) => resolveRequest({ select: text }, { queue: {}, server: { default_chunk: { ncpus: 1 } } }, resources),
  place: (text) => parsePlace(text, resources),
  exec_vnode: (text) => parseExecVnode(text),
  exec_host: (text) => parseExecHost(text),
  "job id": parseJobId,
  "reservation id": parseResvId,
  destination: parseDestination,
  "array indices": parseArrayIndices,
  "list of indices": parseIndexList,
  rule: parseRule,
  "job name": jobNameFault,
  "stage item": parseStageItem,
  "stage list": isStageList,
  "list with hosts": (text) => isAtList(text, { onePerHost: true }),
  list: (text) => splitList(text),
  "list, verbatim": (text) => splitList(text, true),
  "removal from a list": (text) => removeFromList(splitList(text), splitList(text).reverse()),
  "unquoted list": (text) => splitUnquoted(text, ","),
  "resources of -l": parseResources,
  variables: (text) => variableList(splitList(text, true)),
  ...Object.fromEntries(
    [
      "Variable_List",
      "Mail_Users",
      "User_List",
      "stagein",
      "Checkpoint",
      "Keep_Files",
      "Hold_Types",
      "umask",
      "Execution_Time",
      "eligible_time",
      "Priority",
    ].map((name) => [name, (text: string) => renderValue(job(name), parseValue(job(name), text, resources), resources)]),
  ),
  ...Object.fromEntries(
    ["acl_users", "acl_hosts", "managers", "max_queued", "jobscript_max_size"].map((name) => [
      name,
      (text: string) => {
        const value = parseValue(server(name), text, resources);
        return combineValue(server(name), "-=", value, value, resources);
      },
    ]),
  ),
  "resource preempt_targets": (text) => parseValue(job("Resource_List"), text, resources, "preempt_targets"),
  "resource walltime": (text) => parseValue(job("Resource_List"), text, resources, "walltime"),
  "resource mem": (text) => parseValue(job("Resource_List"), text, resources, "mem"),
  frame: (text) => decodeFrame(`{"type":"request","data":${JSON.stringify(text)}}`),
  "frame in pieces": (text) => {
    const decoder = frameDecoder(text.length * 2);
    for (let at = 0; at < text.length; at += 1000) decoder.add(text.slice(at, at + 1000));
    return decoder.take();
  },
  "qmgr request, value": (text) => parseQmgr(`set server comment = ${text}`, attributeLookup),
  "qmgr request, words": (text) => parseQmgr(text, attributeLookup),
  "qmgr request, objects": (text) => parseQmgr(`list queue ${text}`, attributeLookup),
  formula: (text) => readFormula(text, () => "number", JOB_FORMULA_NAMES),
  "answer of a hook, texts": (text) =>
    readAnswer({ verdict: "reject", message: text, output: text, logs: [{ level: 1, job: text, text }], requests: { reboot: text } }),
  "answer of a hook, output of many lines": (text) => readAnswer({ verdict: "accept", output: text.replaceAll(/.{1,8}/gs, "$&\n") }),
  "answer of a hook, many logs": (text) => readAnswer({ verdict: "accept", logs: text.split(",").map((line) => ({ text: line })) }),
  "changes of hooks": (text) => changedBy((text.match(/.{1,256}/gs) ?? []).map((piece, at) => `${at}${piece}`)),
  "request of wrong items": (text) =>
    parseRequest({ id: 1, kind: "status", object: "job", ids: [...text.slice(0, text.length / 4)].map(() => 1) }),
};

/** Reads the answers of two hooks that change many attributes, resources and vnodes, and applies them one after the other. */
function changedBy(names: readonly string[]): unknown {
  const attrs = (value: string) => Object.fromEntries(names.map((name) => [name, value]));
  const given = (value: string) => ({
    verdict: "accept",
    changes: {
      job: { ...attrs(value), Resource_List: attrs(value) },
      vnode_list: Object.fromEntries(names.map((name) => [name, { comment: value }])),
      argv: names,
      env: attrs(value),
    },
  });
  const object = { id: "1", attrs: {} };
  const input: HookInput = {
    event: "queuejob",
    requestor: "u",
    requestor_host: "h",
    server: "h",
    node: "h",
    job: object,
    vnode_list: names.map((id) => ({ id, attrs: {} })),
    writable: {},
  };
  return ["a", "b"].reduce(
    (sum, value) => {
      const outcome = readAnswer(given(value));
      assert.equal(outcome.kind, "accept");
      return withChanges(sum.input, sum.changes, outcome.kind === "accept" ? outcome.changes : {});
    },
    { input, changes: {} },
  );
}

/** Milliseconds of processor time, the least of several rounds; a long run is done once. */
function cost(parse: (text: string) => unknown, text: string): number {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3; round++) {
    const before = process.cpuUsage();
    try {
      parse(text);
    } catch (error) {
      if (!(error instanceof Reject) && (error as Error).name !== "FrameError") throw error;
    }
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
    if (least > 200 || least < 1) break;
  }
  return least;
}

const SMALL = 16_000;
const FACTOR = 8;
/** Linear growth is 8; garbage collection and caches add to it. Quadratic growth is 64. */
const GROWTH_MAX = 30;
/** How often a growth that is too large is measured again. */
const MEASURED_AGAIN = 3;
/** Less than this is noise. */
const NOISE_MS = 8;
const MILLION = 1_000_000;
/** A quadratic parser takes minutes for a million characters. */
const MILLION_MS_MAX = 10_000;

for (const [name, parse] of Object.entries(PARSERS)) {
  test(`${name}: work in proportion to the text, whatever it is`, () => {
    let [most, hardest] = [-1, ""];
    for (const [worst, make] of Object.entries(WORST)) {
      const large = cost(parse, make(SMALL * FACTOR));
      if (large > most) [most, hardest] = [large, worst];
      if (large <= NOISE_MS) continue;
      const small = Math.max(cost(parse, make(SMALL)), NOISE_MS / FACTOR);
      // A full garbage collection may affect one measurement, but not all.
      let growth = large / small;
      for (let more = 0; more < MEASURED_AGAIN && growth > GROWTH_MAX; more++) growth = cost(parse, make(SMALL * FACTOR)) / small;
      assert.ok(growth <= GROWTH_MAX, `${worst}: ${FACTOR} times the text takes ${growth.toFixed(1)} times as long`);
    }
    const million_ms = cost(parse, (WORST[hardest] as (n: number) => string)(MILLION));
    assert.ok(million_ms <= MILLION_MS_MAX, `${hardest}: a million characters take ${million_ms} ms`);
  });
}
