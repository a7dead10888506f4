// Requests that submit campaigns.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ANNA, coreWith, refused, submit } from "../bed.ts";

test("keys that real campaigns do not obey yet are refused by name", () => {
  const core = coreWith("here");
  const why = (more: object, here: object = {}): string => {
    const jdl = { name: "c", nb_jobs: 1, exec_file: "x", clusters: { here }, ...more };
    return refused(core, ANNA, { kind: "grid-submit", jdl: JSON.stringify(jdl) });
  };
  assert.equal(why({ inputs: [{ file: "a" }] }), "JDL: inputs: campaigns do not copy input files yet");
  assert.equal(why({ prologue: ["true"] }), "JDL: clusters.here.prologue: campaigns do not run prologues yet");
  assert.equal(why({}, { epilogue: ["true"] }), "JDL: clusters.here.epilogue: campaigns do not run epilogues yet");
  assert.equal(
    why({ checkpointing: { period: 60 } }),
    "JDL: clusters.here.checkpointing: jobs are not told by a signal to write checkpoints yet",
  );
  assert.equal(core.state.campaigns.size, 0);
  assert.equal(submit(core), 1);
});
