// Reads what Slurm answers: the output of sbatch, squeue and scontrol. Pure.

import type { RunnerSighting } from "../contract/backend.ts";
import { BackendError, cleanText } from "../contract/fault.ts";
import { isTagOf } from "../contract/tag.ts";
import { reasonFault } from "./faults.ts";

/** Returns the job id in the output of `sbatch --parsable`: `5` or `5;cluster`. null: none. */
export function submittedId(stdout: string): string | null {
  return /^([1-9][0-9]{0,9})(?:;\S+)?\s*$/m.exec(stdout)?.[1] ?? null;
}

type State = Pick<RunnerSighting, "state" | "ending">;
const QUEUED: State = { state: "queued", ending: null };
const RUNNING: State = { state: "running", ending: null };
const UNKNOWN: State = { state: "unknown", ending: null };
const ended = (ending: RunnerSighting["ending"]): State => ({ state: "ended", ending });

/** States of jobs. retry: what ended the runner has nothing to do with the runner itself. */
const STATES: Readonly<Record<string, State>> = {
  PENDING: QUEUED,
  REQUEUED: QUEUED,
  REQUEUE_HOLD: QUEUED,
  REQUEUE_FED: QUEUED,
  SPECIAL_EXIT: QUEUED,
  RESV_DEL_HOLD: QUEUED,
  CONFIGURING: RUNNING,
  RUNNING,
  RESIZING: RUNNING,
  SIGNALING: RUNNING,
  STAGE_OUT: RUNNING,
  STOPPED: RUNNING,
  SUSPENDED: RUNNING,
  COMPLETING: RUNNING,
  COMPLETED: ended("done"),
  CANCELLED: ended("retry"),
  NODE_FAIL: ended("retry"),
  PREEMPTED: ended("retry"),
  BOOT_FAIL: ended("retry"),
  DEADLINE: ended("retry"),
  REVOKED: ended("retry"),
  FAILED: ended("error"),
  TIMEOUT: ended("error"),
  OUT_OF_MEMORY: ended("error"),
};

/** Reads the output of squeue with the format of squeueArgs. A line that does not begin with the separator is a part of somebody's job name, and is ignored. */
export function readSqueue(
  stdout: string,
  separator: string,
  of: { readonly complex: string; readonly backend: string; readonly prefix: string },
): readonly RunnerSighting[] {
  const found: RunnerSighting[] = [];
  for (const line of stdout.split("\n")) {
    if (!line.startsWith(separator)) continue;
    const sighting = readLine(line.split(separator), of);
    if (sighting !== null) found.push(sighting);
  }
  return found;
}

function readLine(
  fields: readonly string[],
  of: { readonly complex: string; readonly backend: string; readonly prefix: string },
): RunnerSighting | null {
  const [, id = "", array = "", task = "", state = "", why = "", host = "", user = "", name = "", last] = fields;
  if (last === undefined || !name.startsWith(of.prefix)) return null;
  const tag = name.slice(of.prefix.length);
  if (!isTagOf(tag, of) || !/^[1-9][0-9]*$/.test(array) || !/^[0-9]{1,5}$/.test(task)) return null;
  const known = STATES[state] ?? UNKNOWN;
  const reason = cleanText(why === "None" ? "" : why);
  const words = [state, reason].filter((each) => each !== "").join(" ");
  return {
    tag,
    index: Number(task),
    id: /^[0-9_]+$/.test(id) ? id : `${array}_${task}`,
    ...known,
    reason: words,
    user,
    host: host === "" ? null : cleanText(host),
    fault: known.state === "queued" ? reasonFault(reason) : null,
  };
}

/** Returns the names of licences in the output of `scontrol show licenses`. */
export function readLicenses(stdout: string): ReadonlySet<string> {
  return new Set([...stdout.matchAll(/^LicenseName=([A-Za-z0-9_.@-]+)/gm)].map(([, name = ""]) => name));
}

/** Facts in the output of `scontrol show config`. Throws if it is something else. */
export function readConfig(stdout: string): { readonly version: string; readonly array_max: number; readonly priority_parameters: string } {
  const values = new Map([...stdout.matchAll(/^([A-Za-z_]+)\s*= (.*)$/gm)].map(([, name = "", value = ""]) => [name, value.trim()]));
  const version = values.get("SLURM_VERSION");
  if (version === undefined)
    throw new BackendError({ kind: "transient", text: `scontrol show config printed no version: ${cleanText(stdout.slice(0, 200))}` });
  const size = Number(values.get("MaxArraySize"));
  const parameters = values.get("PriorityParameters") ?? "";
  return {
    version,
    array_max: Number.isInteger(size) && size > 1 ? size - 1 : 1,
    priority_parameters: parameters === "(null)" ? "" : parameters,
  };
}
