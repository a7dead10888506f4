// A stand-in for LSF's commands bsub, bjobs, bkill and bqueues, written from IBM's reference of LSF 10.1. It is not LSF: it knows the options that the adapter
// uses, refuses all others, and runs the elements of arrays as processes of this machine, as many at a time as STAND_IN_SLOTS says.
//
// usage: stand-in.mjs DIRECTORY COMMAND ARGUMENTS... The directory has one file for each element; `lock` in it serialises the commands.

import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, rmdirSync, statSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";

const [dir, command, ...args] = process.argv.slice(2);
const QUEUES = {
  normal: { status: "Open:Active", max_min: 60 },
  long: { status: "Open:Active", max_min: 100_000 },
  shut: { status: "Closed:Active", max_min: 60 },
};
const SLOTS = Number(readText("slots") || 2);

class Refusal extends Error {}

function readText(name) {
  try {
    return readFileSync(join(dir, name), "utf8").trim();
  } catch {
    return "";
  }
}

function save(element) {
  const path = join(dir, `element.${element.job}.${element.index}`);
  writeFileSync(`${path}.tmp`, JSON.stringify(element));
  renameSync(`${path}.tmp`, path);
}

const elements = () =>
  readdirSync(dir)
    .filter((name) => /^element\.\d+\.\d+$/.test(name))
    .map((name) => JSON.parse(readFileSync(join(dir, name), "utf8")))
    .sort((a, b) => a.job - b.job || a.index - b.index);

/** Values of options; options without value are in `flags`. */
function parse(words, valued, flags) {
  const values = new Map();
  const rest = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at];
    if (valued.includes(word)) values.set(word, [...(values.get(word) ?? []), words[++at]]);
    else if (flags.includes(word)) values.set(word, [""]);
    else if (word.startsWith("-")) throw new Refusal(`Illegal option: ${word}`);
    else rest.push(word);
  }
  return { values, rest };
}

function isAlive(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat[stat.lastIndexOf(")") + 2] !== "Z";
  } catch {
    return false;
  }
}

/** Notes what has ended, and starts what waits. */
function advance() {
  for (const each of elements()) {
    if (each.stat !== "RUN" || isAlive(each.pid)) continue;
    const code = readText(`exit.${each.job}.${each.index}`);
    save({ ...each, stat: code === "0" ? "DONE" : "EXIT" });
  }
  let free = SLOTS - elements().reduce((sum, each) => sum + (each.stat === "RUN" ? each.slots : 0), 0);
  for (const each of elements()) {
    if (each.stat !== "PEND" || each.slots > free) continue;
    free -= each.slots;
    const output = openSync(each.output, "a");
    const exit = join(dir, `exit.${each.job}.${each.index}`);
    const child = spawn("/bin/sh", ["-c", '/bin/sh "$1"; echo $? > "$2"', "sh", each.script, exit], {
      detached: true,
      cwd: each.cwd,
      env: { ...process.env, LSB_JOBID: String(each.job), LSB_JOBINDEX: String(each.index) },
      stdio: ["ignore", output, output],
    });
    child.unref();
    closeSync(output);
    save({ ...each, stat: "RUN", pid: child.pid });
  }
}

function bsub() {
  const { values, rest } = parse(
    args,
    ["-J", "-n", "-W", "-cwd", "-o", "-M", "-R", "-gpu", "-q", "-P", "-app", "-sp", "-m", "-G", "-g", "-sla", "-U"],
    ["-rn"],
  );
  const one = (name) => values.get(name)?.[0];
  const named = /^(.+)\[1-(\d+)\]$/.exec(one("-J") ?? "");
  const queue = one("-q") ?? "normal";
  if (rest.length > 0) throw new Refusal("the stand-in reads the script from its standard input");
  if (QUEUES[queue] === undefined) throw new Refusal(`${queue}: No such queue. Job not submitted.`);
  if (QUEUES[queue].status.startsWith("Closed")) throw new Refusal(`${queue}: Queue has been closed. Job not submitted.`);
  if (Number(one("-W")) > QUEUES[queue].max_min) throw new Refusal("RUNLIMIT: Cannot exceed queue's hard limit(s). Job not submitted.");
  if (named === null) throw new Refusal("Bad job name. Job not submitted.");
  if (Number(named[2]) > 1000) throw new Refusal("Job array index too large. Job not submitted.");
  const requirement = values.get("-R")?.join(" ") ?? "";
  if (/nosuch/.test(requirement)) throw new Refusal("Bad resource requirement syntax. Job not submitted.");
  if (elements().filter(({ stat }) => stat === "PEND").length + Number(named[2]) > 20)
    throw new Refusal("Pending job threshold reached. Retrying in 60 seconds...");
  const job = Math.max(0, ...elements().map((each) => each.job)) + 1;
  const script = join(dir, `script.${job}`);
  writeFileSync(script, readFileSync(0, "utf8"));
  for (let index = 1; index <= Number(named[2]); index++)
    save({
      job,
      index,
      name: named[1],
      stat: "PEND",
      slots: Number(one("-n") ?? 1),
      user: userInfo().username,
      script,
      cwd: one("-cwd"),
      output: one("-o").replace("%I", String(index)),
      args,
    });
  advance();
  process.stdout.write(
    one("-q") === undefined ? `Job <${job}> is submitted to default queue <normal>.\n` : `Job <${job}> is submitted to queue <${queue}>.\n`,
  );
}

function bjobs() {
  const { values } = parse(args, ["-u", "-o"], ["-a", "-json"]);
  if (!values.has("-json") || !values.has("-o")) throw new Refusal("the stand-in prints JSON only, for which -o is needed");
  advance();
  const user = values.get("-u")[0];
  const shown = elements().filter((each) => user === "all" || each.user === user);
  if (shown.length === 0) throw new Refusal("No job found");
  const value = {
    jobid: (each) => String(each.job),
    jobindex: (each) => String(each.index),
    stat: (each) => each.stat,
    user: (each) => each.user,
    exec_host: (each) => (each.stat === "RUN" ? (each.slots > 1 ? `${each.slots}*host1` : "host1") : ""),
    pend_reason: (each) => (each.stat === "PEND" ? "Job slot limit reached;" : ""),
    exit_reason: (each) => (each.stat === "EXIT" ? (each.killed ? "TERM_OWNER: job killed by owner" : "") : ""),
    job_name: (each) => `${each.name}[${each.index}]`,
  };
  const fields = values.get("-o")[0].split(" ");
  const record = (each) => Object.fromEntries(fields.map((field) => [field.toUpperCase(), value[field](each)]));
  process.stdout.write(`${JSON.stringify({ COMMAND: "bjobs", JOBS: shown.length, RECORDS: shown.map(record) }, null, 2)}\n`);
}

function bkill() {
  let failed = false;
  for (const word of args) {
    const [, job, index] = /^(\d+)\[(\d+)\]$/.exec(word) ?? [];
    const found = elements().find((each) => String(each.job) === job && String(each.index) === index);
    if (found === undefined) {
      failed = true;
      process.stderr.write(`Job <${word}>: No matching job found\n`);
    } else if (found.stat === "DONE" || found.stat === "EXIT") {
      failed = true;
      process.stderr.write(`Job <${word}>: Job has already finished\n`);
    } else {
      if (found.stat === "RUN") process.kill(-found.pid, "SIGKILL");
      save({ ...found, stat: "EXIT", killed: true });
      process.stdout.write(`Job <${word}> is being terminated\n`);
    }
  }
  advance();
  process.exitCode = failed ? 255 : 0;
}

function bqueues() {
  process.stdout.write("QUEUE_NAME      PRIO STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN  SUSP \n");
  for (const [name, { status }] of Object.entries(QUEUES))
    process.stdout.write(`${name.padEnd(15)}  30  ${status.padEnd(15)}   -    -    -    -     0     0     0     0\n`);
}

/** Waits for the lock: a directory, which only one process can make. A lock of a process that was killed is broken. */
function locked(work) {
  const lock = join(dir, "lock");
  for (;;) {
    try {
      mkdirSync(lock);
      break;
    } catch {
      const age_ms = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
      if (age_ms > 20_000) rmdirSync(lock);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    }
  }
  try {
    work();
  } finally {
    rmdirSync(lock);
  }
}

/** A file `hang` makes all commands hang after their work, a file `down` makes them say that LSF is down. */
try {
  if (readText("down") !== "") throw new Refusal("LSF is down. Please wait ...");
  locked(() => ({ bsub, bjobs, bkill, bqueues })[command]());
  if (readText("hang") !== "") setInterval(() => undefined, 1000);
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 255;
}
