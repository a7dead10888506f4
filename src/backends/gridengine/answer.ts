// Reads what Grid Engine answers: the output of qsub -terse, qstat -xml, qstat -j, qconf and qdel. Pure.

import { ORDER_COUNT_MAX, type RunnerSighting } from "../contract/backend.ts";
import { BackendError, cleanText } from "../contract/fault.ts";
import { isTagOf } from "../contract/tag.ts";

/** Returns the job's number in the output of `qsub -terse`: `5` or `4.1-6:1`. null: none. */
export function submittedJob(stdout: string): string | null {
  return /^([1-9][0-9]{0,9})(?:\.[0-9]+-[0-9]+:[0-9]+)?\s*$/m.exec(stdout)?.[1] ?? null;
}

type Of = { readonly complex: string; readonly backend: string; readonly prefix: string };

/** Reads the list of qstat -xml. Throws if it is not whole: a part of a list would report living runners as ended. */
export function readQstat(xml: string, of: Of): readonly RunnerSighting[] {
  if (!/<job_info[\s>]/.test(xml) || !/<\/job_info>\s*$/.test(xml))
    throw new BackendError({ kind: "transient", text: `qstat printed no complete list: ${cleanText(xml.slice(-200))}` });
  const found: RunnerSighting[] = [];
  for (const block of xml.split("<job_list ").slice(1)) found.push(...readJob(block, of));
  return found;
}

function readJob(block: string, of: Of): readonly RunnerSighting[] {
  const value = (tag: string): string => new RegExp(`<${tag}>([^<]*)</${tag}>`).exec(block)?.[1] ?? "";
  const [job, name, letters] = [value("JB_job_number"), textOf(value("JB_name")), value("state")];
  if (!name.startsWith(of.prefix) || !/^[1-9][0-9]*$/.test(job)) return [];
  const tag = name.slice(of.prefix.length);
  if (!isTagOf(tag, of)) return [];
  const queue = textOf(value("queue_name"));
  const state = stateOf(letters);
  return indicesOf(value("tasks")).map((task) => ({
    tag,
    index: task - 1,
    id: `${job}.${task}`,
    state,
    reason: cleanText(letters),
    user: textOf(value("JB_owner")),
    host: queue.includes("@") ? cleanText(queue.slice(queue.indexOf("@") + 1)) : null,
    ending: null,
    fault: letters.includes("E") ? { kind: "configuration", text: `${cleanText(letters)}: the job is in error state` } : null,
  }));
}

/** Letters of a job's state: E error, q queued, w waiting, h held; r running, t being sent, s S T suspended, R restarted, d being deleted; z ended. */
function stateOf(letters: string): RunnerSighting["state"] {
  if (letters.includes("z")) return "ended";
  if (letters.includes("q") || letters.includes("w")) return "queued";
  return /[rtsSTd]/.test(letters) ? "running" : "unknown";
}

/** Returns the tasks of a text such as `1-6:2,9`; at most ORDER_COUNT_MAX. */
export function indicesOf(text: string): readonly number[] {
  const found: number[] = [];
  for (const part of text.split(",")) {
    const match = /^([0-9]{1,7})(?:-([0-9]{1,7})(?::([0-9]{1,7}))?)?$/.exec(part.trim());
    if (match === null) continue;
    const [first, last, step] = [Number(match[1]), Number(match[2] ?? match[1]), Math.max(1, Number(match[3] ?? 1))];
    for (let task = first; task <= last && task >= 1 && found.length < ORDER_COUNT_MAX; task += step) found.push(task);
  }
  return found;
}

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

const textOf = (xml: string): string => xml.replace(/&(lt|gt|amp|quot|apos);/g, (whole, name: string) => ENTITIES[name] ?? whole);

/** Returns why a job is in error state, in the output of `qstat -j`; null: the output does not say why. */
export function errorReason(stdout: string): string | null {
  const reason = /^error reason\s+\d*:\s*(.*)$/m.exec(stdout)?.[1];
  return reason === undefined ? null : cleanText(reason);
}

/** Returns names (and short names) of the resources of type MEMORY in the output of `qconf -sc`. */
export function memoryNames(stdout: string): ReadonlySet<string> {
  return new Set([...stdout.matchAll(/^([A-Za-z_]\S*)\s+(\S+)\s+MEMORY\s/gm)].flatMap(([, name = "", short = ""]) => [name, short]));
}

/** Returns the largest number of tasks of a job in the output of `qconf -sconf`. In this output 0 means that there is no limit. */
export function tasksMax(stdout: string): number {
  const max = Number(/^max_aj_tasks\s+(\d+)/m.exec(stdout)?.[1] ?? 1);
  return max === 0 ? ORDER_COUNT_MAX : max;
}

/** Returns the lines of qdel that report a real failure. That a job does not exist is no failure: it has ended. */
export function qdelFailures(stdout: string, stderr: string): string {
  const lines = `${stdout}\n${stderr}`.split("\n").map((line) => line.trim());
  return lines
    .filter((line) => line !== "" && !/does not exist|has (?:registered|deleted)|is already in deletion|registered the job/.test(line))
    .join(" ");
}
