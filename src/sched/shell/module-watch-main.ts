// The thread of module-watch.ts. Four times a second it checks which call of a site's module the main thread is executing.

import { existsSync, readFileSync, writeSync } from "node:fs";
import { pid } from "node:process";
import { parentPort, workerData } from "node:worker_threads";
import { WATCH_SIGNAL } from "#protocol/sched-link.ts";
import { messageOf } from "#support/caught.ts";
import { writeWholeFile } from "#support/whole-file.ts";
import { AT, type Stuck, stuckOf, stuckText, type WatchMessage } from "./module-watch.ts";

const STDERR = 2;
const LOOK_MS = 250;
const KILL_AFTER_MS = 1000;
/** A longer time between two checks counts as this time, because this thread itself did not run for a while (W3). */
const LOOK_MS_MAX = 2 * LOOK_MS;

const memory = new Int32Array(workerData as SharedArrayBuffer);
const calls = new Map<number, Omit<Stuck, "alarm_s">>();
let file = "";
let alarm_s = 0;
let looked_ms = performance.now();
/** `now` of look() at the last check, and for how long it has been the same */
let seen = "";
let stood_ms = 0;

parentPort?.on("message", (message: WatchMessage) => {
  if (message.kind === "set") ({ file, alarm_s } = message);
  else calls.set(message.call, { name: message.name, from: message.from, doing: message.doing });
});

setInterval(look, LOOK_MS);

function look(): void {
  const now_ms = performance.now();
  const passed_ms = Math.min(LOOK_MS_MAX, now_ms - looked_ms);
  looked_ms = now_ms;
  const call = Atomics.load(memory, AT.CALL);
  const blamed = call !== 0 ? call : Atomics.load(memory, AT.CYCLE) === 0 ? Atomics.load(memory, AT.OPEN) : 0;
  // A call counts as hanging while the main thread stays in the same call. A promise counts as hanging while it is open and
  // the main thread does not return to its event loop.
  const now = blamed === 0 ? "" : `${blamed} ${Atomics.load(memory, call !== 0 ? AT.CALLS : AT.BEAT)} ${call}`;
  stood_ms = now !== "" && now === seen ? stood_ms + passed_ms : 0;
  seen = now;
  if (alarm_s > 0 && stood_ms >= alarm_s * 1000) end(blamed);
}

function end(blamed: number): void {
  const call = calls.get(blamed);
  if (call !== undefined) note({ ...call, alarm_s });
  process.kill(pid, WATCH_SIGNAL);
  // A site's module may handle SIGALRM itself, so SIGKILL follows.
  setTimeout(() => process.kill(pid, "SIGKILL"), KILL_AFTER_MS);
}

/**
 * Notes a module in the file. The process is ended even if this fails: an administrator notices a scheduler that is started
 * again and again, but not one that hangs.
 */
function note(stuck: Stuck): void {
  try {
    const others = existsSync(file) ? stuckOf(readFileSync(file, "utf8")) : [];
    writeWholeFile(file, stuckText([...others.filter(({ name }) => name !== stuck.name), stuck]));
  } catch (error) {
    writeSync(STDERR, `pbs_sched: module ${stuck.name} stands still and cannot be noted: ${messageOf(error)}\n`);
  }
}
