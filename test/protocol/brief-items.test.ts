import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { briefItems, wholeItems } from "#protocol/brief-items.ts";
import type { StatusItem } from "#protocol/messages.ts";

const throughWire = (parts: readonly (readonly StatusItem[])[]): StatusItem[] => {
  const whole = wholeItems();
  return parts.flatMap((part) => (JSON.parse(JSON.stringify(briefItems(part))) as ReturnType<typeof briefItems>).map(whole));
};

test("brief items are made whole again: ids, attributes, values and their order", () => {
  const list = { ncpus: "1" };
  const attrs = { Job_Name: "a", Resource_List: list, queue: "workq" };
  const items: StatusItem[] = [
    { id: "1.s", attrs },
    { id: "2.s", attrs },
    { id: "3.s", attrs: { ...attrs, Job_Name: "b" } },
    { id: "4.s", code: 15001, text: "Unknown Job Id" },
    { id: "5.s", attrs: { ...attrs, Job_Name: "b" } },
    { id: "6.s", attrs: { queue: "workq", Job_Name: "b" } },
  ];
  assert.deepEqual(briefItems(items), [
    items[0],
    { id: "2.s", like: {} },
    { id: "3.s", like: { Job_Name: "b" } },
    items[3],
    { id: "5.s", like: {} },
    items[5],
  ]);
  assert.equal(JSON.stringify(throughWire([items.slice(0, 2), items.slice(2)])), JSON.stringify(items));
});

const value = fc.oneof(fc.constantFrom("x", "y", "1"), fc.constantFrom({ ncpus: "1" }, { mem: "2gb" }), fc.constantFrom(["u:a=1"], []));
const attrs = fc
  .uniqueArray(fc.constantFrom("a", "b", "c", "d"), { minLength: 0 })
  .chain((names) => fc.tuple(...names.map(() => value)).map((values) => Object.fromEntries(names.map((name, at) => [name, values[at]]))));
const item = fc.oneof(
  { weight: 9, arbitrary: fc.record({ id: fc.string(), attrs }) },
  { weight: 1, arbitrary: fc.constant({ id: "z", code: 1, text: null }) },
);

test("whatever the items and however they are cut into parts, they come out as they went in", () => {
  fc.assert(
    fc.property(fc.array(fc.array(item)), (parts) => {
      const all = parts as StatusItem[][];
      assert.equal(JSON.stringify(throughWire(all)), JSON.stringify(all.flat()));
    }),
  );
});
