// The published JSON Schema and the check of a campaign file agree on every file: one accepts its shape exactly if the other does.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { z } from "zod";
import { JDL_SHAPE } from "#grid/jdl/fields.ts";
import { JsonFault, type JsonNode, parseLocatedJson } from "#grid/jdl/located-json.ts";
import { jdlSchema } from "#grid/jdl/schema.ts";
import { type Shape, shapeFaults } from "#grid/jdl/shape.ts";

const schema = z.fromJSONSchema(jdlSchema());
const isShapely = (value: unknown): boolean => shapeFaults(parseLocatedJson(JSON.stringify(value)), JDL_SHAPE).length === 0;

/** Values of a shape. odd: of how many values one is not of the shape; 0: none. */
function valuesOf(shape: Shape, odd: number): fc.Arbitrary<unknown> {
  const right = rightValuesOf(shape, odd);
  return odd === 0 ? right : fc.oneof({ weight: odd, arbitrary: right }, { weight: 1, arbitrary: ODD });
}

const ODD: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, "", "x", "soon", "1:2:3:4", 0, -1, 1.5, 1e17, "\n", "a b", "\u0000", [], {}, ["a"], { a: 1 }),
  fc.string(),
);
const TEXTS = ["a", "/tmp/x y", "1:ncpus=2", "SIGUSR2", "a-b.c", "x\ty", "é€", "😀"];

function rightValuesOf(shape: Shape, odd: number): fc.Arbitrary<unknown> {
  switch (shape.kind) {
    case "text":
      return fc.oneof(fc.constantFrom(...TEXTS), fc.string({ minLength: 1 })).filter((text) => shape.pattern.test(text));
    case "integer":
      return fc.integer({ min: shape.min, max: Math.min(shape.max, 2 ** 31 - 1) });
    case "number":
      return fc.double({ min: shape.min, max: shape.max, noNaN: true });
    case "flag":
      return fc.boolean();
    case "choice":
      return fc.constantFrom(...shape.values);
    case "duration":
      return fc.constantFrom<unknown>("01:00:00", "90", "1:90", 3600, 1);
    case "list":
      return fc.array(valuesOf(shape.of, odd), { minLength: shape.min, maxLength: 2 });
    case "map":
      return fc.dictionary(fc.constantFrom("here", "c1", ...(odd > 0 ? ["a b", ""] : [])), valuesOf(shape.of, odd), {
        minKeys: shape.min,
        maxKeys: 2,
      });
    case "record": {
      const fields = Object.fromEntries(Object.entries(shape.fields).map(([key, field]) => [key, valuesOf(field.shape, odd)]));
      const requiredKeys = Object.keys(fields).filter((key) => shape.fields[key]?.isRequired);
      const right = fc.record(fields, { requiredKeys });
      return odd === 0
        ? right
        : fc.oneof(
            { weight: odd, arbitrary: right },
            { weight: 1, arbitrary: fc.record({ ...fields, unknown_key: fc.boolean() }, { requiredKeys: [] }) },
          );
    }
    default: {
      const unreachable: never = shape;
      return unreachable;
    }
  }
}

test("the schema accepts exactly the files whose shape the check accepts", () => {
  let accepted = 0;
  fc.assert(
    fc.property(fc.oneof(valuesOf(JDL_SHAPE, 0), valuesOf(JDL_SHAPE, 60)), (value) => {
      const file: unknown = JSON.parse(JSON.stringify(value));
      const isAccepted = isShapely(file);
      if (isAccepted) accepted++;
      assert.equal(schema.safeParse(file).success, isAccepted, JSON.stringify(file));
    }),
    { numRuns: 600 },
  );
  assert.ok(accepted > 200 && accepted < 580, `${accepted} of 600 files were accepted`);
});

test("JSON is read as JSON.parse reads it, and what JSON.parse refuses is refused", () => {
  fc.assert(
    fc.property(fc.oneof(fc.json(), fc.json().chain(spoiled), fc.string()), (text) => {
      let expected: unknown;
      try {
        expected = JSON.parse(text);
      } catch {
        assert.throws(() => parseLocatedJson(text), JsonFault, text);
        return;
      }
      let node: JsonNode;
      try {
        node = parseLocatedJson(text);
      } catch (error) {
        // Only these are refused beyond JSON.parse.
        assert.match(error instanceof Error ? error.message : "", /stands twice|nested more than/);
        return;
      }
      assert.deepEqual(plain(node), expected);
    }),
    { numRuns: 2000 },
  );
});

const spoiled = (text: string): fc.Arbitrary<string> =>
  fc
    .tuple(fc.nat(text.length), fc.constantFrom("", ",", '"', "}", "]", "\\", "\n", "0", "e"))
    .map(([at, put]) => text.slice(0, at) + put + text.slice(at + 1));

function plain(node: JsonNode): unknown {
  switch (node.kind) {
    case "object":
      return Object.fromEntries([...node.members].map(([key, { value }]) => [key, plain(value)]));
    case "list":
      return node.items.map(plain);
    case "null":
      return null;
    default:
      return node.value;
  }
}
