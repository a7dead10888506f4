// Modules of a site in a real scheduler: the examples of docs/, options, faults of every kind.

import assert from "node:assert/strict";
import { appendFileSync, chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Complex, startComplex, until } from "../complex.ts";
import { ROOT } from "../shared.ts";

const EXAMPLES = join(ROOT, "docs/examples/modules");

describe("modules of a scheduler", () => {
  let complex: Complex;
  let priv: string;
  let shipped: string;
  before(async () => {
    complex = await startComplex();
    complex.qmgr("set server job_history_enable=True");
    priv = join(complex.pbsHome, "sched_priv");
    shipped = readFileSync(join(priv, "sched_config"), "utf8");
  });
  after(() => complex.stop());

  const log = (): string => complex.log("sched_logs");
  const put = (file: string, text: string): void => writeFileSync(join(priv, file), text, { mode: 0o644 });
  const comment = (): string => /comment = (.*)/.exec(complex.qmgr("list sched default comment"))?.[1] ?? "";
  /** Writes new lines of sched_config and sends SIGHUP; resolves when the scheduler has read them. */
  const configure = async (lines: string): Promise<void> => {
    put("sched_config", `${shipped}\n${lines}\n`);
    // A rotation reduces the number, so any change counts.
    const times = (): number => log().split("Scheduler is reconfiguring").length;
    const before = times();
    process.kill(complex.schedPid("default") as number, "SIGHUP");
    await until("the files are read", () => times() !== before);
  };
  const jobComment = (id: string, text: string) => until(`${id} told ${text}`, () => complex.job(id).comment?.includes(text) === true);

  test("the examples of docs/: jobs of a project wait, figures are written, options reach the modules", async () => {
    for (const file of ["quiet-hours.mjs", "cycle-metrics.mjs"]) copyFileSync(join(EXAMPLES, file), join(priv, file));
    const figures = join(complex.work(), "sched.prom");
    await configure(
      `modules: limits time resources quiet-hours.mjs ${join(priv, "cycle-metrics.mjs")}\n` +
        `quiet-hours.projects: night\nquiet-hours.from: 0\nquiet-hours.until: 24\nquiet-hours.lunch: 12\ncycle-metrics.file: ${figures}`,
    );
    const waits = complex.submit(["-P", "night", "--", "/bin/true"]);
    const runs = complex.submit(["--", "/bin/true"]);
    await complex.untilJob(runs, "F");
    await jobComment(waits, "Not Running: Project night does not run from 0 to 24 o'clock");
    await until("the figures", () => existsSync(figures) && /pbs_sched_started\{sched="default"\} 1/.test(readFileSync(figures, "utf8")));
    assert.match(log(), /;quiet-hours;unknown option quiet-hours.lunch; there are projects, from, until/);
    await configure("modules: limits time resources quiet-hours.mjs\nquiet-hours.projects: other");
    complex.qmgr("set server scheduling=True");
    await complex.untilJob(waits, "F");
  });

  // biome-ignore format: a table
  const FAULTS: readonly (readonly [what: string, module: string, comment: RegExp])[] = [
    ["throws in a check",      'export default { checks: [{ stage: "limits", check() { throw new Error("no idea"); } }] };', /^NEEDS_ATTENTION: module faulty: left out: the check of stage limits: no idea$/],
    ["answers no reason",      'export default { checks: [{ stage: "limits", check: () => 17 }] };',                        /left out: the check of stage limits: its answer is no reason/],
    ["decides nonsense",       'export default { begin(cycle) { cycle.decide({ kind: "run", job: 5 }); } };',               /left out: begin: its decision is none/],
    ["throws when made",       'export default () => { throw new Error("not today"); };',                                  /left out: not today$/],
    ["throws at start",        'export default { kind: "service", async start() { throw new Error("no start"); } };',      /left out: start: no start$/],
    ["throws after a cycle",   'export default { kind: "service", async cycle() { throw new Error("too late"); } };',      /left out: cycle: too late$/],
    ["has a wrong stage",      'export default { checks: [{ stage: "never", check() {} }] };',                             /left out: a check of an unknown stage never$/],
    ["is no JavaScript",       "this is not a program",                                                                    /left out: /],
    ["exports nothing",        "export const a = 1;",                                                                      /left out: its default export is neither a module nor/],
  ];
  for (const [what, text, expected] of FAULTS) {
    test(`a module that ${what} is named, left out and told; jobs run all the same`, async () => {
      put("faulty.mjs", text);
      await configure("modules: limits time resources faulty.mjs");
      await complex.untilJob(complex.submit(["--", "/bin/true"]), "F");
      await until("the comment", () => expected.test(comment())).catch((error: Error) => assert.fail(`${error.message}: ${comment()}`));
      assert.match(log(), /;pbs_sched;Sched;faulty;left out: /);
      await configure("");
      await until("the comment is gone", () => comment() === "");
    });
  }

  test("a name that is no module's is told and left out; jobs run", async () => {
    await configure("modules: limits time resources backfil");
    await complex.untilJob(complex.submit(["--", "/bin/true"]), "F");
    await until("the comment", () => comment() === "NEEDS_ATTENTION: module backfil: left out: Unknown module backfil");
    assert.match(log(), /;Fil;sched_config;Error reading line \d+: Unknown module backfil/);
    await configure("");
    await until("the comment is gone", () => comment() === "");
  });

  const hangs = "const hang = () => { for (;;) {} };";
  // biome-ignore format: a table
  const ENDLESS: readonly (readonly [what: string, module: string, comment: RegExp])[] = [
    ["in a check",           `${hangs} export default { checks: [{ stage: "limits", check: hang }] };`,  /left out: the check of stage limits: not done within 2 s \(the scheduler was ended for it\)$/],
    ["while it is loaded",   `${hangs} hang();`,                                                         /left out: loading: not done within 2 s \(the scheduler was ended for it\)$/],
    ["behind an await",      `${hangs} export default { kind: "service", cycle: () => new Promise((go) => setTimeout(() => go(hang()), 1)) };`, /left out: cycle: not done within 2 s \(the scheduler was ended for it\)$/],
  ];
  for (const [what, text, expected] of ENDLESS) {
    test(`a module that never comes to its end ${what} is named and left out by the scheduler that takes over; jobs run`, async () => {
      put("endless.mjs", text);
      const before = complex.schedPid("default");
      await configure("module_alarm: 2\nmodules: limits time resources endless.mjs");
      const id = complex.submit(["--", "/bin/true"]);
      await until("the comment", () => expected.test(comment())).catch((error: Error) => assert.fail(`${error.message}: ${comment()}`));
      await complex.untilJob(id, "F");
      assert.notEqual(complex.schedPid("default"), before);
      assert.match(log(), /;pbs_sched;Sched;endless;left out: /);
      assert.match(
        complex.log("server_logs"),
        /;ended with signal SIGALRM from its own watch thread: a module's call took longer than module_alarm/,
      );
      // A changed attribute does not make the scheduler try the module again, but a change of its file does.
      const after = complex.schedPid("default");
      complex.qmgr("set sched default attr_update_period=0");
      await complex.untilJob(complex.submit(["--", "/bin/true"]), "F");
      assert.match(comment(), expected);
      put("endless.mjs", "export default {};");
      complex.qmgr("set sched default attr_update_period=1");
      await until("the comment is gone", () => !expected.test(comment()));
      await complex.untilJob(complex.submit(["--", "/bin/true"]), "F");
      assert.equal(complex.schedPid("default"), after);
      await configure("");
      complex.qmgr("unset sched default comment");
    });
  }

  // biome-ignore format: a table
  const UNSETTLED: readonly (readonly [what: string, module: string, comment: RegExp])[] = [
    ["of its maker", "export default () => new Promise(() => {});",                                       /left out: loading: not done within 1 s$/],
    ["of start",     'export default { kind: "service", start: () => new Promise(() => {}) };',           /left out: start: not done within 1 s$/],
    ["of cycle",     'export default { kind: "service", cycle: () => new Promise(() => {}) };',           /left out: cycle: not done within 2 s$/],
  ];
  for (const [what, text, expected] of UNSETTLED) {
    test(`a promise that never settles, ${what}: the module is left out, the scheduler goes on`, async () => {
      put("unsettled.mjs", text);
      const before = complex.schedPid("default");
      await configure("module_alarm: 1\nmodule_work_alarm: 2\nmodules: limits time resources unsettled.mjs");
      await complex.untilJob(complex.submit(["--", "/bin/true"]), "F");
      await until("the comment", () => expected.test(comment())).catch((error: Error) => assert.fail(`${error.message}: ${comment()}`));
      assert.equal(complex.schedPid("default"), before);
      await configure("");
      await until("the comment is gone", () => comment() === "");
    });
  }

  test("a module's file that is missing, or that others can write, is refused; an administrator's comment is his own", async () => {
    complex.qmgr("set sched default comment = 'hands off'");
    await configure("modules: limits time resources nosuch.mjs");
    await until("it is told", () => /;pbs_sched;Sched;nosuch;left out: .*no such file/i.test(log()));
    put("open.mjs", "export default {};");
    chmodSync(join(priv, "open.mjs"), 0o666);
    await configure("modules: limits time resources open.mjs");
    await until("it is told", () => /;pbs_sched;Sched;open;left out: .*open.mjs can be written by group or others/.test(log()));
    const dir = join(complex.work(), "open");
    mkdirSync(dir);
    chmodSync(dir, 0o777);
    writeFileSync(join(dir, "inside.mjs"), "export default {};", { mode: 0o644 });
    await configure(`modules: limits time resources ${dir}/inside.mjs`);
    await until("it is told", () => /;pbs_sched;Sched;inside;left out: .*\/open can be written by group or others/.test(log()));
    await complex.untilJob(complex.submit(["--", "/bin/true"]), "F");
    assert.equal(comment(), "hands off");
    complex.qmgr("unset sched default comment");
    rmSync(dir, { recursive: true });
    await configure("");
  });

  test("logger, profiler: the log is rotated and compressed, tracejob finds what is in it; a full disk is told and over", async () => {
    const id = complex.submit(["--", "/bin/true"]);
    await complex.untilJob(id, "F");
    const logs = join(complex.pbsHome, "sched_logs");
    await configure("logger.size_max: 1kb\nprofiler.disk_min: 1000pb\nprofiler.interval: 0");
    await until("the disk is told", () => /^NEEDS_ATTENTION: module profiler: \d+ MB free in /.test(comment()));
    complex.qmgr("set server scheduling=True");
    await until("the log is rotated", () => readdirSync(logs).some((name) => name.endsWith(".1.gz")));
    assert.match(complex.must("tracejob", ["-s", "-m", "-a", id]), / L +Considering job to run/);
    await configure("");
    await until("the comment is gone", () => comment() === "");
  });

  test("start, cycle and shutdown: a module hears of them in that order, and of the scheduler's end", async () => {
    const heard = join(complex.work(), "heard");
    put(
      "listener.mjs",
      `import { appendFileSync } from "node:fs";
       const hear = (what) => appendFileSync(${JSON.stringify(heard)}, what + "\\n");
       export default () => ({ kind: "service", start: () => hear("start"), cycle: () => hear("cycle"), shutdown: () => hear("shutdown") });`,
    );
    await configure("modules: limits time resources listener.mjs");
    await complex.untilJob(complex.submit(["--", "/bin/true"]), "F");
    const text = (): string => (existsSync(heard) ? readFileSync(heard, "utf8") : "");
    await until("a cycle is heard of", () => text().includes("cycle"));
    complex.qmgr("set sched default scheduling=False");
    complex.must("qterm", ["-s"]);
    await until("the end is heard of", () => text().endsWith("shutdown\n"));
    assert.match(text(), /^start\n(cycle\n)+shutdown\n$/);
    appendFileSync(heard, "");
    complex.start();
  });
});
