// partita top on a live complex: over a pipe, as JSON, and on a terminal (tmux) with its keys.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { type Complex, startComplex, until } from "../complex.ts";

const hasTmux = spawnSync("tmux", ["-V"]).status === 0;

describe("partita top", () => {
  let complex: Complex;
  let runs: string;
  let waits: string;
  before(async () => {
    complex = await startComplex();
    complex.qmgr("set server job_history_enable=True");
    const node = complex.must("pbsnodes", ["-a"]).split("\n")[0] as string;
    complex.qmgr(`set node ${node} resources_available.ncpus=4`);
    runs = complex.submit(["-l", "select=1:ncpus=3,walltime=1000", "--", "/bin/sleep", "1000"]);
    await complex.untilJob(runs, "R");
    waits = complex.submit(["-l", "select=1:ncpus=2,walltime=50", "--", "/bin/true"]);
    await until("it is told why", () => complex.job(waits).comment !== undefined);
  });
  after(() => complex.stop());

  test("over a pipe one snapshot, or one document", () => {
    const text = complex.must("partita", ["top", "--home", complex.home]);
    assert.match(text, /^partita top {2}/);
    assert.match(text, /\n {4}ncpus {2}\[#{30}\.{10}\] 3 of 4 used\n/);
    assert.match(text, new RegExp(`\n${waits} +\\S+ +workq +1:ncpus=2 +00:00:50 +- +Insufficient amount of resource: ncpus`));
    assert.match(text, new RegExp(`\nevents\n( .*\n)* +\\d\\d:\\d\\d:\\d\\d ${runs} runs on `));
    const document = JSON.parse(complex.must("partita", ["top", "--json", "--home", complex.home]));
    assert.deepEqual(
      [document.scheds.length, document.scheds[0].view.jobs, document.scheds[0].view.waiting[0].id],
      [1, { R: 1, Q: 1 }, waits],
    );
  });

  test("a time between looks that is none is refused", () => {
    for (const seconds of ["x", "0", "-1"]) {
      const { status, stderr } = complex.run("partita", ["top", "--home", complex.home, `--seconds=${seconds}`]);
      assert.deepEqual([status, stderr], [1, "partita: --seconds: a positive number\n"]);
    }
  });

  test("on a terminal: the live view, an explanation opened and closed, the end", { skip: hasTmux ? false : "needs tmux" }, async () => {
    const socket = `partita-top-${process.pid}`;
    const tmux = (...args: readonly string[]): string =>
      spawnSync("tmux", ["-L", socket, ...args], { encoding: "utf8", env: complex.env() }).stdout;
    const shown = (what: string, expected: RegExp) =>
      until(what, () => expected.test(tmux("capture-pane", "-p"))).catch((error: Error) =>
        assert.fail(`${error.message}:\n${tmux("capture-pane", "-p")}`),
      );
    tmux(
      "new-session",
      "-d",
      "-x",
      "130",
      "-y",
      "36",
      `${complex.command("partita")} top --home ${complex.home} --seconds 0.5; echo ended; sleep 1000`,
    );
    try {
      await shown("the job that waits", new RegExp(`${waits} +\\S+ +workq`));
      tmux("send-keys", "Enter");
      await shown("its explanation", new RegExp(`Job ${waits} in queue workq .*it waits`));
      tmux("send-keys", "Escape");
      await shown("the overview", /arrows choose/);
      complex.must("qdel", [runs]);
      await shown("the job has run", /No job waits/);
      tmux("send-keys", "q");
      await shown("the end", /^ended/m);
    } finally {
      tmux("kill-server");
    }
  });
});
