// Mixed jobs on the runners of one backend, while whatever can be killed is killed: each job completes exactly once, and nothing is left behind. The same test for every type of
// backend; what differs is a `Seat`.

import assert from "node:assert/strict";
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Complex, startComplex, until } from "../complex.ts";

/** A backend for the test. */
export type Seat = {
  /** the type of the backend object */
  readonly type: string;
  /** the user of the complex; absent: ourselves */
  readonly owner?: string;
  /** attributes of the backend object, each `NAME=VALUE` */
  readonly attributes: (complex: Complex) => readonly string[];
  /** makes the backend unreachable, or stop it */
  readonly stop: (complex: Complex) => Promise<void>;
  readonly resume: (complex: Complex) => Promise<void>;
  /** whether list backend must tell the fault while the backend is stopped; false: the backend has no fault of its own (local) */
  readonly tells: boolean;
  /** what the backend has that has not ended */
  readonly left: (complex: Complex, backend: string) => Promise<readonly string[]>;
};

/** Of a failure, so many lines of each log and so many jobs are shown. */
const LOG_LINES = 30;
const OPEN_MAX = 4;

/** How many jobs each backend gets: 120, or PARTITA_MIXED_JOBS. From 500 jobs on, the backend is stopped for a minute. */
export const MIXED_JOBS = Number(process.env["PARTITA_MIXED_JOBS"] ?? 120);
const OUTAGE_MS = MIXED_JOBS >= 500 ? 60_000 : 10_000;
const RUNNERS = 6;
/** Every such job is removed while it waits. */
const REMOVED = 11;
/** The kinds of jobs follow one another; a job of this kind waits for the one before it. */
const KINDS = 23;
const DEPENDENT = 14;
/** A job of an array counts as this many. */
const ARRAY = 5;

/** A job that notes its id when it begins and when it ends. A second run at the same time notes that it overlaps. */
const SCRIPT = `#!/bin/sh
out=$1 at=\${PBS_ARRAY_INDEX:-$2}
exec 9>> "$out.lock.$at"
flock -n 9 || echo "overlap $at" >> "$out"
echo "begin $at" >> "$out"
sleep "$3"
echo "end $at" >> "$out"
`;

/** Whether another job waits for the end of this job. */
const isAwaited = (at: number): boolean => (at + 1) % KINDS === DEPENDENT;

/** What is left to a person who reads the report. */
export type Figures = {
  readonly jobs: number;
  readonly removed: number;
  readonly runs: number;
  readonly killed: number;
  readonly took_s: number;
};

export async function mixedJobs(seat: Seat, jobs = MIXED_JOBS): Promise<Figures> {
  const complex = await startComplex(seat.owner === undefined ? {} : { owner: seat.owner });
  try {
    return await new Run(complex, seat, jobs).all();
  } finally {
    await complex.stop();
  }
}

class Run {
  readonly #complex: Complex;
  readonly #seat: Seat;
  readonly #jobs: number;
  /** no other complex of this machine has runners of this name */
  readonly #backend = `b${process.pid.toString(36)}`;
  readonly #out: string;
  /** the numbers of jobs by their ids */
  readonly #ats = new Map<string, number>();
  readonly #removed = new Set<number>();
  #killed = 0;

  constructor(complex: Complex, seat: Seat, jobs: number) {
    this.#complex = complex;
    this.#seat = seat;
    this.#jobs = jobs;
    this.#out = join(complex.work(), "out");
  }

  async all(): Promise<Figures> {
    const began_ms = performance.now();
    this.#setUp();
    this.#submit();
    await this.#trouble();
    await this.#allEnded();
    const runs = this.#judge();
    await this.#nothingLeft();
    const took_s = Math.round((performance.now() - began_ms) / 100) / 10;
    return { jobs: this.#jobs, removed: this.#removed.size, runs, killed: this.#killed, took_s };
  }

  #setUp(): void {
    const { type, attributes } = this.#seat;
    const name = this.#backend;
    this.#complex.qmgr(
      "set server job_history_enable=t",
      "create queue cloud queue_type=e,enabled=t,started=t,partition=cloud",
      "create sched cs partition=cloud",
      "set sched cs scheduling=t",
      `create backend ${name} type=${type}`,
      ...attributes(this.#complex).map((each) => `set backend ${name} ${each}`),
      `set backend ${name} partition=cloud,max_runners=${RUNNERS},fallback=hold`,
    );
  }

  /** Submits jobs of several buckets: plain ones, large ones, long ones, arrays, and jobs that wait for another one. */
  #submit(): void {
    const script = join(this.#complex.work(), "job.sh");
    writeFileSync(script, SCRIPT);
    chmodSync(script, 0o755);
    const lines: string[] = [];
    for (let at = 0; at < this.#jobs; ) {
      const kind = at % KINDS;
      const more =
        kind === 3 ? "-l ncpus=2" : kind === 5 ? "-l walltime=0:05:00 -p 10" : kind === 9 ? "-l mem=50mb" : kind === DEPENDENT ? "-h" : "";
      const seconds = kind === 5 ? 2 : ((at * 7) % 10) / 10;
      const isArray = kind === 17 && at + ARRAY <= this.#jobs;
      const array = isArray ? `-J ${at}-${at + ARRAY - 1}` : "";
      lines.push(`${more} ${array} -- ${script} ${this.#out} ${at} ${seconds}`);
      at += isArray ? ARRAY : 1;
    }
    const common = ["-q", "cloud", "-l", "walltime=0:01:00", "-r", "y", "-o", "/dev/null", "-e", "/dev/null"];
    const ids = this.#complex
      .must("qsub", [...common, "--batch", "-"], { input: lines.join("\n") })
      .trim()
      .split("\n");
    assert.equal(ids.length, lines.length);
    let at = 0;
    for (const [index, id] of ids.entries()) {
      this.#ats.set(id, at);
      if (/-h /.test(lines[index] ?? "")) {
        // The jobs that were held wait for the one before them; the hold only keeps them from being started before that is said.
        this.#complex.must("qalter", ["-W", `depend=afterok:${ids[index - 1]}`, id]);
        this.#complex.must("qrls", [id]);
      }
      at += / -J /.test(lines[index] ?? "") ? ARRAY : 1;
    }
    this.#complex.qmgr(`set backend ${this.#backend} enabled=t`);
  }

  /** Kills and removes while jobs run. */
  async #trouble(): Promise<void> {
    const complex = this.#complex;
    await this.#ends(0.1);
    await this.#killRunner();
    this.#removeSome(0);
    await this.#ends(0.2);
    await this.#killServer();
    await this.#ends(0.35);
    await this.#seat.stop(complex);
    await this.#killRunner(RUNNERS - 2);
    this.#removeSome(1);
    if (this.#seat.tells)
      await until("list backend tells that the backend fails", () =>
        /state = failing[\s\S]*last_error = \S/.test(complex.qmgr(`list backend ${this.#backend}`)),
      );
    await sleep(OUTAGE_MS);
    await this.#seat.resume(complex);
    await this.#ends(0.6);
    this.#killController();
    await this.#killServer();
    await this.#ends(0.8);
    await this.#killRunner();
  }

  /** Waits until so many of the jobs have ended. If they do not, says what the complex shows. */
  async #ends(share: number): Promise<void> {
    await this.#untilTold(`${share} of the jobs have ended`, () => this.#lines("end").size >= (this.#jobs - this.#removed.size) * share);
  }

  async #untilTold(what: string, ask: () => boolean): Promise<void> {
    await until(what, ask).catch(async (error: Error) => {
      throw new Error(`${error.message}\n${await this.#picture()}\n${error.message}`);
    });
  }

  /** What the complex shows. What matters most comes last, because reports of test runs show only the end of a long text. */
  async #picture(): Promise<string> {
    const complex = this.#complex;
    const [all, ended, begun] = [complex.jobs(), this.#lines("end"), this.#lines("begin")];
    const open = [...this.#ats].flatMap(([id, first]) => {
      const count = id.includes("[]") ? ARRAY : 1;
      const ats = Array.from({ length: count }, (_, more) => first + more).filter((at) => !ended.has(at) && !this.#removed.has(at));
      return ats.length === 0 ? [] : [{ id, ats }];
    });
    const [first] = open;
    const tail = (log: string): string => complex.log(log).split("\n").slice(-LOG_LINES).join("\n");
    return [
      tail("runner_logs"),
      ...(first === undefined ? [] : [complex.run("tracejob", [first.id]).stdout.split("\n").slice(-LOG_LINES).join("\n")]),
      `the backend has: ${(await this.#seat.left(complex, this.#backend)).join("; ")}`,
      complex.must("partita", ["runners", "--home", complex.home]),
      complex.qmgr(`list backend ${this.#backend}`),
      `states: ${JSON.stringify(
        Object.groupBy(Object.values(all), ({ job_state }) => job_state),
        (_state, value) => (Array.isArray(value) ? value.length : value),
      )}`,
      ...open
        .slice(-OPEN_MAX)
        .map(
          ({ id, ats }) => `${id}: ${ats.map((at) => `${at} began ${begun.get(at) ?? 0} times`).join(", ")}: ${JSON.stringify(all[id])}`,
        ),
    ].join("\n");
  }

  /** Kills some runners that have jobs, as far as there are any. */
  async #killRunner(count = 1): Promise<void> {
    const busy = (): readonly number[] => this.#runners().filter(hasChildren);
    const pids = await until("runners with jobs", () => busy().length >= count && busy(), 3).catch(busy);
    for (const pid of pids.slice(0, count)) process.kill(pid, "SIGKILL");
    this.#killed += Math.min(count, pids.length);
  }

  /** Pids of the runners of this complex on this machine. */
  #runners(): readonly number[] {
    return processes((line) => line.startsWith(`pbs_runner ${this.#backend}-`));
  }

  /** Removes some jobs, whatever they do: those that wait, run, or have just ended. */
  #removeSome(round: number): void {
    const chosen = [...this.#ats].filter(([id, at]) => !id.includes("[") && !isAwaited(at) && at % (2 * REMOVED) === round * REMOVED);
    for (const [id, at] of chosen) {
      const { status, stderr } = this.#complex.run("qdel", [id]);
      // The job of a runner that was just killed is noted as deleted although qdel fails: it ends with its runner.
      if (status === 0 || /could not connect to MOM/.test(stderr)) this.#removed.add(at);
      else assert.match(stderr, /has finished|Unknown/);
    }
  }

  #killController(): void {
    process.kill(Number(readFileSync(join(this.#complex.pbsHome, "runner_priv/runners.lock"), "utf8")), "SIGKILL");
  }

  async #killServer(): Promise<void> {
    process.kill(this.#complex.pid("server") ?? 0, "SIGKILL");
    await until("the server is gone", () => this.#complex.pid("server") === null);
    this.#complex.start();
  }

  async #allEnded(): Promise<void> {
    await this.#untilTold("all jobs have ended", () => {
      const ended = this.#lines("end");
      for (let at = 0; at < this.#jobs; at++) if (!ended.has(at) && !this.#removed.has(at)) return false;
      return true;
    });
    await until("the server knows that all jobs have ended", () =>
      Object.values(this.#complex.jobs()).every(({ job_state }) => job_state === "F"),
    );
  }

  /** How often each job noted a word. */
  #lines(word: string): ReadonlyMap<number, number> {
    const counts = new Map<number, number>();
    if (!existsSync(this.#out)) return counts;
    for (const line of readFileSync(this.#out, "utf8").split("\n")) {
      const [what, at] = line.split(" ");
      if (what === word) counts.set(Number(at), (counts.get(Number(at)) ?? 0) + 1);
    }
    return counts;
  }

  /** Checks that each job completed exactly once. Returns the number of runs. */
  #judge(): number {
    assert.deepEqual([...this.#lines("overlap")], [], "no job ran twice at the same time");
    const [begins, ends] = [this.#lines("begin"), this.#lines("end")];
    const last = new Map(
      readFileSync(this.#out, "utf8")
        .trim()
        .split("\n")
        .map((line) => line.split(" "))
        .map(([what, at]) => [Number(at), what]),
    );
    let twice = 0;
    for (let at = 0; at < this.#jobs; at++) {
      if (this.#removed.has(at)) {
        assert.ok((ends.get(at) ?? 0) <= 1, `removed job ${at} ended ${ends.get(at)} times`);
        continue;
      }
      assert.equal(last.get(at), "end", `no run of job ${at} began after its end`);
      if ((begins.get(at) ?? 0) > 1) twice++;
    }
    // A job runs again only if its runner was killed.
    assert.ok(twice <= this.#killed, `${twice} jobs ran more than once, ${this.#killed} runners were killed`);
    for (const [id, job] of Object.entries(this.#complex.jobs())) {
      const at = this.#ats.get(id) ?? Number.NaN;
      if (this.#removed.has(at)) continue;
      assert.equal(job.Exit_status, 0, `${id}: ${JSON.stringify(job)}`);
    }
    return [...begins.values()].reduce((sum, each) => sum + each, 0);
  }

  async #nothingLeft(): Promise<void> {
    const complex = this.#complex;
    const recorded = (): string => complex.must("partita", ["runners", "-F", "json", "--home", complex.home]);
    await until("no runner is recorded", () => JSON.parse(recorded()).runners.length === 0);
    await until("no runner is a process of this machine", () => this.#runners().length === 0);
    await until(`${this.#seat.type} has nothing left`, async () => (await this.#seat.left(complex, this.#backend)).length === 0);
    const tokens = join(complex.pbsHome, "runner_priv", this.#backend, "tokens");
    await until("the tokens are removed", () => !existsSync(tokens) || readdirSync(tokens).length === 0);
    assert.match(complex.qmgr(`list backend ${this.#backend}`), /state = ready/);
  }
}

/** Pids of processes whose command line matches. */
export function processes(matches: (line: string) => boolean): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return matches(readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " "));
      } catch {
        return false;
      }
    });
}

function hasChildren(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").trim() !== "";
  } catch {
    return false;
  }
}
