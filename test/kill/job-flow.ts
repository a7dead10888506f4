// Short jobs of several users, some of them arrays, while daemons are killed at random and started again. At the end every
// acknowledged job exists, ran as often as its attributes say, and appears in the accounting once. PARTITA_SEED repeats the
// choices (not the timing).

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Prng, prng } from "#support/prng.ts";
import { becoming, type Complex, type ComplexOptions, type JobRecord, startComplex, until } from "../live/complex.ts";
import { killAtRandom, revive, type Victim } from "./killer.ts";

const BATCH_JOBS = 50;
/** number of subjobs of an array */
const SUBJOBS = 5;
const USERS = ["pbsuser1", "pbsuser2", "pbsuser3"];
const asRoot = process.geteuid?.() === 0;
const seed = process.env["PARTITA_SEED"] ?? String(Math.trunc(Math.random() * 1e9));

let complex: Complex;
let runs: string;
let outputs: string;

/** Starts the complex of this test file. */
export async function beginFlow(options: ComplexOptions = {}): Promise<void> {
  process.stdout.write(`seed ${seed}\n`);
  complex = await startComplex({ ...options, mode: asRoot ? "system" : "user" });
  runs = openDirectory("runs");
  outputs = openDirectory("outputs");
  complex.qmgr("set server job_history_enable=True", "set node @default resources_available.ncpus=64");
}

export const endFlow = async (): Promise<void> => complex?.stop();

function openDirectory(name: string): string {
  const path = join(complex.work(), name);
  mkdirSync(path);
  chmodSync(path, 0o1777);
  return path;
}

/** A job records its run, and ends with the status that its name contains. */
function jobLine(random: Prng): string {
  const status = random.pick([0, 0, 0, 1, 7]);
  const script = `echo $$ >> ${runs}/$PBS_JOBID; echo output of $PBS_JOBID; sleep ${random.pick([0, 0, 0.1, 0.3, 1])}; exit ${status}`;
  const array = random.chance(0.03) ? ["-J", `1-${SUBJOBS}`] : [];
  const rerunable = array.length === 0 && random.chance(0.2) ? "n" : "y";
  const args = ["-N", `status${status}`, "-j", "oe", "-o", `${outputs}/`, "-r", rerunable, ...array];
  return `${JSON.stringify(random.chance(0.5) ? { args, script: `#!/bin/sh\n${script}\n` } : { args, command: ["/bin/sh", "-c", script] })}\n`;
}

/** Submits until that many jobs are acknowledged, and returns their ids. If the server is away, the request is repeated. */
async function submitAll(user: string | undefined, count: number, random: Prng): Promise<readonly string[]> {
  const ids: string[] = [];
  const command = complex.command("qsub");
  const env = complex.env();
  const words =
    user === undefined
      ? [command, "--batch", "-"]
      : [...becoming(user), "env", `PBS_CONF_FILE=${env["PBS_CONF_FILE"]}`, command, "--batch", "-"];
  while (ids.length < count) {
    const lines = Array.from({ length: Math.min(BATCH_JOBS, count - ids.length) }, () => jobLine(random));
    const child = spawn(words[0] as string, words.slice(1), { env, cwd: complex.work(user), stdio: ["pipe", "pipe", "ignore"] });
    let printed = "";
    child.stdout.setEncoding("utf8").on("data", (chunk) => {
      printed += chunk;
    });
    child.stdin.on("error", () => undefined);
    child.stdin.end(lines.join(""));
    await new Promise((resolve) => child.once("close", resolve));
    ids.push(...printed.split("\n").slice(0, -1));
    await sleep(random.int(0, 600));
  }
  return ids;
}

const linesOf = (path: string): readonly string[] => (existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : []);

/** Letters of the accounting records of each job, in order. */
function accounting(): ReadonlyMap<string, string> {
  const letters = new Map<string, string>();
  for (const [, letter, id] of complex.log("server_priv/accounting").matchAll(/^[^;\n]*;(.);([^;\n]*);/gm))
    letters.set(id as string, (letters.get(id as string) ?? "") + letter);
  return letters;
}

/** The faults in a job's history; empty if there are none. */
function faultsOf(id: string, job: JobRecord, letters: string, kills: ReadonlyMap<Victim, number>): readonly string[] {
  const noted = linesOf(join(runs, id)).length;
  const count = (letter: string): number => letters.split(letter).length - 1;
  const run_count = job.run_count ?? 0;
  const status = Number(/^status(\d+)$/.exec(String(job["Job_Name"]))?.[1]);
  // A lost starter takes its jobs with it: they run again, or end with a negative status if they may not run again.
  const lost = job.Exit_status !== undefined && job.Exit_status < 0 && job["Rerunable"] === "False" && kills.has("starter");
  const checks: readonly (readonly [fault: string, ok: boolean])[] = [
    ["is not finished", job.job_state === "F"],
    [`has Exit_status ${job.Exit_status}`, job.Exit_status === status || lost],
    ["never ran", noted >= 1 || lost],
    [`ran ${noted} times, run_count is ${run_count}`, noted <= run_count],
    ["ran again though no starter was lost", noted <= 1 || kills.has("starter")],
    ["ran again though it must not", noted <= 1 || job["Rerunable"] !== "False"],
    [
      `has accounting ${letters}`,
      count("Q") === (job["array_id"] === undefined ? 1 : 0) && count("E") === 1 && count("S") === count("R") + 1 && letters.at(-1) === "E",
    ],
    [`has output ${JSON.stringify(outputOf(id))}`, lost || outputOf(id).endsWith(`output of ${id}\n`)],
  ];
  return checks.filter(([, ok]) => !ok).map(([fault]) => `${id} ${fault}`);
}

/** An array ends once, after all its subjobs. */
function arrayFaultsOf(id: string, job: JobRecord, letters: string, jobs: Readonly<Record<string, JobRecord>>): readonly string[] {
  const status = Number(/^status(\d+)$/.exec(String(job["Job_Name"]))?.[1]) === 0 ? 0 : 1;
  const missing = Array.from({ length: SUBJOBS }, (_, at) => id.replace("[]", `[${at + 1}]`)).filter(
    (subjob) => jobs[subjob] === undefined,
  );
  const checks: readonly (readonly [fault: string, ok: boolean])[] = [
    ["is not finished", job.job_state === "F" && job["substate"] === 92],
    [`has Exit_status ${job.Exit_status}`, job.Exit_status === status],
    [`has no ${missing.join(" ")}`, missing.length === 0],
    [`has accounting ${letters}`, letters === "QSE"],
  ];
  return checks.filter(([, ok]) => !ok).map(([fault]) => `${id} ${fault}`);
}

const outputOf = (id: string): string =>
  linesOf(join(outputs, `${id}.OU`))
    .join("\n")
    .concat("\n");

export type FlowOptions = {
  /** the number of jobs */
  readonly jobs: number;
  readonly victims: readonly Victim[];
  /** kills something that is no daemon, and starts it again */
  readonly killOther?: () => void;
};

/** Submits jobs, kills while they flow, and checks every job at the end. */
export async function checkFlow(t: TestContext, { jobs: count, victims, killOther }: FlowOptions): Promise<void> {
  const random = prng(seed);
  const users = asRoot ? USERS : [undefined];
  let submitting = true;
  const submissions = Promise.all(
    users.map((user, at) => submitAll(user, Math.ceil(count / users.length), random.split(`user ${at}`))),
  ).finally(() => {
    submitting = false;
  });
  const unfinished = (): number | undefined => {
    const { status, stdout } = complex.run("qselect", []);
    return status === 0 ? stdout.split("\n").length - 1 : undefined;
  };
  const kills = await killAtRandom(complex, {
    random: random.split("kills"),
    victims,
    ...(killOther === undefined ? {} : { killOther }),
    goesOn: () => submitting || unfinished() !== 0,
  });
  const acknowledged = (await submissions).flat();
  await until(
    "all jobs finished",
    async () => {
      revive(complex);
      await sleep(500);
      return unfinished() === 0;
    },
    400,
  );
  const told = [...kills].map(([victim, count]) => `${victim} ${count}`).join(", ");
  t.diagnostic(`seed ${seed}; kills: ${told}; ${acknowledged.length} jobs acknowledged`);
  assert.equal(new Set(acknowledged).size, acknowledged.length, "no id twice");
  const { Jobs: jobs = {} } = JSON.parse(complex.must("qstat", ["-x", "-t", "-f", "-F", "json"])) as {
    readonly Jobs?: Readonly<Record<string, JobRecord>>;
  };
  const letters = accounting();
  const faults = [
    ...acknowledged.filter((id) => jobs[id] === undefined).map((id) => `${id} is lost`),
    ...[...letters.keys()].filter((id) => jobs[id] === undefined).map((id) => `${id} is only in the accounting`),
    ...Object.entries(jobs).flatMap(([id, job]) =>
      id.includes("[]") ? arrayFaultsOf(id, job, letters.get(id) ?? "", jobs) : faultsOf(id, job, letters.get(id) ?? "", kills),
    ),
  ];
  assert.deepEqual(faults.slice(0, 20), [], `${faults.length} faults; kills: ${told}; seed ${seed}`);
  assert.ok(Object.keys(jobs).length >= count);
}
