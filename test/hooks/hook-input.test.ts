// Answers of hook hosts: any answer becomes an outcome of the right shape, and the next hook sees the changes of the one
// before.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type HookInput, isAttrChanges, isObjectChanges, readAnswer } from "#hooks/run/hook-input.ts";
import { runSequence } from "#hooks/run/hook-sequence.ts";

const anyAnswer = fc.oneof(
  fc.jsonValue(),
  fc.record(
    {
      verdict: fc.oneof(fc.constantFrom("accept", "reject", "stopped", "error"), fc.jsonValue()),
      message: fc.jsonValue(),
      error: fc.jsonValue(),
      output: fc.jsonValue(),
      logs: fc.oneof(fc.jsonValue(), fc.array(fc.record({ level: fc.jsonValue(), job: fc.jsonValue(), text: fc.jsonValue() }))),
      requests: fc.oneof(fc.jsonValue(), fc.record({ jobs: fc.jsonValue(), restart_cycle: fc.jsonValue(), reboot: fc.jsonValue() })),
      changes: fc.oneof(
        fc.jsonValue(),
        fc.record({ job: fc.jsonValue(), vnode_list: fc.jsonValue(), argv: fc.jsonValue(), env: fc.jsonValue() }, { requiredKeys: [] }),
      ),
    },
    { requiredKeys: [] },
  ),
);

test("any JSON becomes an outcome of the right shape, and one line stays one line", () => {
  fc.assert(
    fc.property(anyAnswer, (answer) => {
      const outcome = readAnswer(answer);
      assert.ok(["accept", "reject", "error", "alarm"].includes(outcome.kind));
      for (const { level, job, text } of outcome.logs) {
        assert.ok(Number.isSafeInteger(level) && (job === null || typeof job === "string"));
        assert.doesNotMatch(text, /[\r\n]/);
      }
      if (outcome.kind !== "accept" && outcome.kind !== "reject") return;
      const { changes, requests } = outcome;
      assert.ok(changes.job === undefined || isAttrChanges(changes.job));
      assert.ok(changes.vnode_list === undefined || isObjectChanges(changes.vnode_list));
      assert.ok(changes.argv === undefined || changes.argv.every((word) => typeof word === "string"));
      assert.ok(Object.values(changes.env ?? {}).every((text) => typeof text === "string"));
      assert.ok(Object.values(requests.jobs).every((wish) => wish === "rerun" || wish === "delete"));
      assert.equal(typeof requests.restart_cycle, "boolean");
      assert.ok(requests.reboot === null || typeof requests.reboot === "string");
    }),
  );
});

const INPUT: HookInput = {
  event: "execjob_begin",
  requestor: "pbs_mom",
  requestor_host: "n1",
  server: "svr",
  node: "n1",
  job: { id: "1.svr", attrs: { Priority: "0", Resource_List: { ncpus: "1" } } },
  writable: { job: ["Priority", "Resource_List"] },
};
const hook = (name: string) => ({
  name,
  type: "site",
  alarm: 30,
  freq: 120,
  order: 1,
  user: "pbsadmin",
  debug: false,
  fail_action: [`of ${name}`],
  script: { language: "python" as const, content: "" },
  config: null,
});

test("hooks of one event on a host: each sees what those before have changed; the first that refuses or fails ends it", async () => {
  const answers: { readonly [name: string]: unknown } = {
    a: { verdict: "accept", changes: { job: { Priority: "5", Resource_List: { ncpus: "2" } } }, requests: { jobs: { "1.svr": "rerun" } } },
    b: { verdict: "accept", changes: { job: { Resource_List: { walltime: "60" } } } },
    no: { verdict: "reject", message: "no" },
    bad: { verdict: "error", error: "first\nsecond" },
    slow: { verdict: "stopped" },
  };
  const rows: readonly (readonly [names: readonly string[], end: string, asked: string])[] = [
    [["a", "b"], "accept b null", "a b"],
    [["a", "no", "b"], "reject no no", "a no"],
    [["bad", "a"], "failed bad null", "bad"],
    [["a", "slow", "b"], "alarm slow null", "a slow"],
  ];
  for (const [names, expected, asked] of rows) {
    const seen: { name: string; attrs: unknown }[] = [];
    const end = await runSequence(names.map(hook), INPUT, {}, async (run) => {
      seen.push({ name: run.name, attrs: run.input.job?.attrs });
      return readAnswer(answers[run.name]);
    });
    assert.equal(`${end.kind} ${end.hook} ${end.message}`, expected);
    assert.equal(seen.map(({ name }) => name).join(" "), asked);
    if (names[0] === "a") {
      assert.deepEqual(seen[1]?.attrs, { Priority: "5", Resource_List: { ncpus: "2" } });
      assert.deepEqual(end.requests.jobs, { "1.svr": "rerun" });
    }
    if (end.kind === "accept") assert.deepEqual(end.changes.job, { Priority: "5", Resource_List: { ncpus: "2", walltime: "60" } });
    if (end.kind === "failed")
      assert.deepEqual([end.fail_action, end.logs.slice(-2).map(({ text }) => text)], [["of bad"], ["first", "second"]]);
  }
});
