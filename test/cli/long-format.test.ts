import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { jsonAttrs, jsonWriter, longText, longWriter } from "#cli/long-format.ts";

const text = fc.oneof(fc.constantFrom("x", "12", "a,b", "A=1,B=2", "", "line\nend"), fc.string({ maxLength: 200 }));
const value = fc.oneof(text, fc.constantFrom({ ncpus: "1" }, { mem: "2gb", stime: "7" }, {}), fc.constantFrom(["u:a=1", "u:b=2"], []));
const attrs = fc
  .uniqueArray(fc.constantFrom("Job_Name", "ctime", "Variable_List", "Resource_List", "comment", "d"))
  .chain((names) => fc.tuple(...names.map(() => value)).map((values) => Object.fromEntries(names.map((name, at) => [name, values[at]]))));

test("an object in a listing looks as it does alone, whatever stood before it", () => {
  fc.assert(
    fc.property(fc.array(attrs), fc.boolean(), (objects, wide) => {
      const list = objects as Parameters<typeof jsonAttrs>[0][];
      const long = longWriter(wide);
      const json = jsonWriter(2);
      for (const object of list) {
        assert.equal(long("Job Id", "1.s", object), longText("Job Id", "1.s", object, wide));
        assert.equal(json(object), jsonAttrs(object, 2));
      }
    }),
  );
});

test("an object as text and as JSON", () => {
  const object = { Job_Name: "7", Resource_List: { ncpus: "1", mem: "2gb" }, ACL: ["u:a=1", "u:b=2"], comment: "x".repeat(90) };
  assert.equal(
    longText("Job Id", "1.s", object, false),
    `Job Id: 1.s\n    Job_Name = 7\n    Resource_List.ncpus = 1\n    Resource_List.mem = 2gb\n    ACL = u:a=1\n    ACL = u:b=2\n    comment = ${"x".repeat(64)}x\n\t${"x".repeat(25)}\n\n`,
  );
  assert.equal(
    jsonAttrs({ Job_Name: "7", Resource_List: { ncpus: "1" }, none: {} }, 0),
    '{\n\t"Job_Name":\t"7",\n\t"Resource_List":\t{\n\t\t"ncpus":\t1\n\t},\n\t"none":\t{\n\t}\n}',
  );
});
