// For any text, a value is accepted or refused with Reject, and nothing else is thrown. An accepted value is rendered and
// parsed back unchanged.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseDestination } from "#model/destination.ts";
import { jobIdText, parseJobId } from "#model/job-id.ts";
import { Reject } from "#model/pbse.ts";
import { execVnodeText, parseExecVnode } from "#model/request/exec-vnode.ts";
import { alterRequest, isOldStyle, resolveRequest } from "#model/request/job-request.ts";
import { parsePlace, placeText } from "#model/request/place.ts";
import { parseSelect, selectText } from "#model/request/select.ts";
import { builtinResources, customResource } from "#model/resource-table.ts";
import { ATTRIBUTE_TABLES } from "#model/tables/tables.ts";
import { combineLimits, parseLimitSyntax, renderEntityLimits } from "#model/values/entity-limit.ts";
import { alterValue, combineValue, parseValue, renderValue } from "#model/values/index.ts";
import { combineSizes, parseSize, renderSize, sizeBytes } from "#model/values/size.ts";

const resources = builtinResources();
resources.set("r_float", customResource("r_float", "float", "hn"));
resources.set("r_arr", customResource("r_arr", "string_array", "h"));
const ROWS = Object.values(ATTRIBUTE_TABLES).flatMap((table) => table.rows);
const NAMES = [...resources.keys()];

/** Texts made of pieces of the grammars and of arbitrary characters. */
const pieces = fc.array(
  fc.constantFrom(
    "1",
    "2",
    "0",
    "-",
    "+",
    ":",
    ",",
    "=",
    "ncpus",
    "mem",
    "1gb",
    "[",
    "]",
    "(",
    ")",
    "u",
    "o",
    "PBS_ALL",
    "PBS_GENERIC",
    "@",
    "*",
    "'",
    '"',
    "\\",
    " ",
    "\t",
    "free",
    "pack",
    "excl",
    "#",
    ".",
    "host",
    "group=",
    "select",
    "True",
    "n1",
    "ppn=",
    "x",
    "99999999999999999999",
    "1e5",
    "nodes",
    "é",
    "\0",
    "\n",
  ),
  { maxLength: 14 },
);
const texts = fc.oneof(
  pieces.map((parts) => parts.join("")),
  fc.string({ maxLength: 24 }),
  fc.string({ unit: "binary", maxLength: 24 }),
);

/** The value, or undefined if it was refused with Reject. */
function attempt<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch (error) {
    assert.ok(error instanceof Reject, String(error instanceof Error ? error.stack : error));
    return undefined;
  }
}

test("random: every attribute takes or refuses any text, and shows what it took so that it reads back the same", () => {
  fc.assert(
    fc.property(fc.constantFrom(...ROWS), fc.constantFrom(...NAMES), texts, (def, resource, text) => {
      const byResource = def.type === "resource_list" || def.type === "entity_limit_res";
      const value = attempt(() => parseValue(def, text, resources, byResource ? resource : undefined));
      if (value === undefined || def.type === "interactive") return;
      const shown = renderValue(def, value, resources);
      const parts = byResource
        ? (shown as { readonly [resource: string]: string | readonly string[] })[resource]
        : (shown as string | readonly string[]);
      const again = typeof parts === "string" ? parts : (parts ?? []).join(",");
      assert.deepEqual(parseValue(def, again, resources, byResource ? resource : undefined), value);
    }),
    { numRuns: 3000 },
  );
});

test("random: sequences of operators never throw anything but Reject, and leave nothing empty", () => {
  const ops = fc.constantFrom("=", "+=", "-=", "unset") as fc.Arbitrary<"=" | "+=" | "-=" | "unset">;
  const changes = fc.array(
    fc.record({ op: ops, value: texts, resource: fc.option(fc.constantFrom(...NAMES, "nosuch"), { nil: undefined }) }),
    { maxLength: 6 },
  );
  fc.assert(
    fc.property(fc.constantFrom(...ROWS), changes, (def, steps) => {
      let value = def.default;
      for (const { resource, ...step } of steps) {
        const change = resource === undefined ? step : { ...step, resource };
        attempt(() => {
          value = alterValue(def, value, change, resources);
        });
        if (Array.isArray(value) && def.type !== "node_state") assert.notEqual(value.length, 0);
        else if (typeof value === "object" && def.type !== "node_state") assert.notEqual(Object.keys(value).length, 0);
        if (value !== undefined) renderValue(def, value, resources);
      }
    }),
    { numRuns: 1500 },
  );
});

test("random: sizes add and subtract to the bytes of their sum", () => {
  const sizes = fc
    .tuple(fc.nat({ max: 1e6 }), fc.constantFrom("b", "kb", "mb", "gb", "w", "kw", "mw"))
    .map(([count, unit]) => `${count}${unit}`);
  fc.assert(
    fc.property(sizes, sizes, (a, b) => {
      const [left, right] = [parseSize(a)!, parseSize(b)!];
      const sum = combineSizes(left, right, 1)!;
      assert.equal(sizeBytes(sum), sizeBytes(left) + sizeBytes(right));
      assert.deepEqual(parseSize(renderSize(sum)), sum);
      const back = combineSizes(sum, right, -1)!;
      assert.equal(sizeBytes(back), sizeBytes(left));
    }),
  );
});

test("random: limits keep their entries through +=, text and back", () => {
  const entities = fc.dictionary(fc.constantFrom("u:alice", "u:PBS_GENERIC", "g:staff", "o:PBS_ALL", "p:a b", "p:x"), fc.nat({ max: 99 }), {
    minKeys: 1,
  });
  fc.assert(
    fc.property(entities, entities, (a, b) => {
      const sum = combineLimits("+=", a, b)!;
      assert.deepEqual(sum, { ...a, ...b });
      const parsed = parseLimitSyntax(renderEntityLimits(sum).join(","));
      assert.ok(parsed.ok);
      assert.deepEqual(Object.fromEntries(parsed.entries.map(({ key, amount }) => [key, Number(amount)])), sum);
      assert.equal(combineLimits("-=", sum, sum), undefined);
    }),
  );
});

test("random: select, place, exec_vnode and ids are refused or written the same", () => {
  fc.assert(
    fc.property(texts, (text) => {
      const select = attempt(() => parseSelect(text));
      if (select !== undefined) assert.deepEqual(parseSelect(selectText(select)), select);
      const exec = attempt(() => parseExecVnode(text));
      if (exec !== undefined) assert.deepEqual(parseExecVnode(execVnodeText(exec)), exec);
      const place = attempt(() => parsePlace(text, resources));
      if (place !== undefined) assert.deepEqual(parsePlace(placeText(place), resources), place);
      const id = parseJobId(text);
      if (id !== null) assert.deepEqual(parseJobId(jobIdText(id)), { ...id, at: "" });
      parseDestination(text);
    }),
    { numRuns: 5000 },
  );
});

test("random: a request resolves or is refused, and resolving or altering it again changes nothing", () => {
  const counts = fc.nat({ max: 5 });
  const chunks = fc.array(
    fc.tuple(
      counts,
      fc.constantFrom("", ":ncpus=2", ":mem=1gb", ":ncpus=1:mem=100mb", ":r_float=0.5", ":host=n1", ":nosuch=1", ":mpiprocs=2"),
    ),
    { minLength: 1, maxLength: 3 },
  );
  const selects = fc.oneof(
    chunks.map((list) => list.map(([count, rest]) => `${count}${rest}`).join("+")),
    texts,
  );
  const request = fc.record(
    {
      select: selects,
      place: fc.constantFrom("free", "pack:excl", "scatter", "odd"),
      nodes: fc.constantFrom("2:ppn=2", "1", "n1+n2", "3#shared"),
      ncpus: counts,
      mem: fc.constantFrom("1gb", "7kb", "3mw"),
      walltime: fc.nat({ max: 9999 }),
      r_float: fc.constantFrom(0.25, 3),
    },
    { requiredKeys: [] },
  );
  const defaults = { queue: { default_chunk: { mem: "1mb" } }, server: { resources_default: { ncpus: 1 }, default_chunk: { ncpus: 1 } } };
  fc.assert(
    fc.property(request, (asked) => {
      const first = attempt(() => resolveRequest(asked as { [resource: string]: string | number }, defaults, resources));
      if (first === undefined) return;
      const list = first.Resource_List;
      const altered = alterRequest(list, { cput: 5 }, defaults, resources);
      assert.deepEqual({ ...altered.Resource_List }, { ...list, cput: 5 });
      assert.equal(altered.schedselect, first.schedselect);
      if (asked.select !== undefined && asked.place !== undefined) assert.equal(isOldStyle(list, defaults, resources), false);
    }),
    { numRuns: 2000 },
  );
});

test("random: combining typed values of one attribute is defined for every operator", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...ROWS),
      texts,
      texts,
      fc.constantFrom(...NAMES),
      fc.constantFrom("=", "+=", "-="),
      (def, a, b, resource, op) => {
        const of = (text: string): unknown =>
          attempt(() =>
            parseValue(def, text, resources, def.type === "resource_list" || def.type === "entity_limit_res" ? resource : undefined),
          );
        const [left, right] = [of(a), of(b)];
        if (left === undefined || right === undefined) return;
        attempt(() => combineValue(def, op as "=", left as string, right as string, resources));
      },
    ),
    { numRuns: 1000 },
  );
});
