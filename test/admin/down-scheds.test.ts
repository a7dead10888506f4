import assert from "node:assert/strict";
import { test } from "node:test";
import { downScheds } from "#admin/complex/daemons.ts";
import { LOG_FAULT, PRIV_FAULT } from "#protocol/sched-link.ts";

test("down schedulers: those that should run, also when the server switched their scheduling off", () => {
  const rows: [name: string, attrs: { [name: string]: string }, isDown: boolean][] = [
    ["runs", { scheduling: "True", partition: "p1", state: "idle" }, false],
    ["fell", { scheduling: "True", partition: "p1", state: "down" }, true],
    ["idle", { scheduling: "False", partition: "p1", state: "down" }, false],
    ["said", { scheduling: "False", partition: "p1", state: "down", comment: "closed until Monday" }, false],
    ["bare", { scheduling: "True", state: "down" }, false],
    ["priv", { scheduling: "False", partition: "p1", state: "down", comment: PRIV_FAULT }, true],
    ["logs", { scheduling: "False", partition: "p1", state: "down", comment: LOG_FAULT }, true],
  ];
  const scheds = rows.map(([id, attrs]) => ({ id, attrs }));
  assert.deepEqual(
    downScheds({ server: [], scheds, nodes: [] }).map(({ name }) => name),
    rows.filter(([, , isDown]) => isDown).map(([name]) => name),
  );
});
