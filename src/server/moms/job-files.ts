// What the run of a job may do with the files of another host: write its output and what stageout names, read what stagein names (docs/files.md).
//
// F1. The answer follows from the present state of the job. A run that is over may do nothing, and neither may an earlier run of the job.
// F2. Only the first host of the job may ask for its run. If that is the server's host, its mom need not be connected, because a server that was just started still waits for the
//     mom.

import { isHostNamed } from "#identity/host-name.ts";
import { arrayIdOf, outputName, subjobIndex } from "#model/job-id.ts";
import { parseHostPath, withIndex } from "#model/values/host-path.ts";
import { parseStageItem, type StageItemText } from "#model/values/stage-item.ts";
import type { FilesGrant } from "#protocol/join-link.ts";
import type { Moms } from "../engine/mom-runtime.ts";
import { hostOfJob } from "../state/job-hosts.ts";
import { phaseOf } from "../state/job-phase.ts";
import { isOwnName, type OwnHost } from "../state/own-host.ts";
import type { Job, ServerState } from "../state/state.ts";

/** A host of the complex, as its certificate names it. is_server: it is the server's host. */
export type NamedHost = { readonly host: string; readonly is_server: boolean };

/** The parts of the kernel that are needed. */
type Files = { readonly state: ServerState; readonly moms: Pick<Moms, "by_host">; readonly config: OwnHost };

/** Returns what the run may do on the host `on`, or the reason why it may do nothing. from: the host that asks. */
export function grantOf(
  { state, moms, config }: Files,
  { job: id, run_count }: { readonly job: string; readonly run_count: number },
  from: NamedHost,
  on: NamedHost,
): FilesGrant | string {
  const job = state.jobs.get(id);
  const nothing = `job ${id} does not run on ${from.host}`;
  if (job === undefined) return nothing;
  const phase = phaseOf(job);
  if (!("run_count" in phase) || phase.run_count !== run_count) return nothing;
  const first = hostOfJob(job);
  const mom = moms.by_host.get(first.toLowerCase());
  const is_there = from.is_server
    ? isOwnName(config, first) || (mom !== undefined && mom.hello.address === undefined)
    : isHostNamed(from.host, first);
  if (!is_there) return nothing;
  const means = (name: string): boolean =>
    on.is_server ? isOwnName(config, name) || isHostNamed(on.host, name) : isHostNamed(on.host, name);
  const written = placesToWrite(job, means);
  return {
    user: job.attrs.euser,
    group: job.attrs.egroup,
    put: [...written.keys()],
    names: [...written.values()],
    get: staged(job, "stagein", means).map(({ path }) => path),
  };
}

const OUTPUTS = [
  ["Output_Path", "o"],
  ["Error_Path", "e"],
] as const;
/** Returns the pattern that only this name fits: the id of a subjob has brackets. */
const literal = (name: string): string => name.replace(/[\\*?[]/g, "\\$&");

const lastName = (path: string): string => path.split("/").findLast((name) => name !== "") ?? "";

/** Returns the places that the run may write, each with the names or patterns of the files that it sends there. */
function placesToWrite(job: Job, means: (host: string) => boolean): ReadonlyMap<string, readonly string[]> {
  const places = new Map<string, string[]>();
  const add = (path: string, name: string): void => {
    const names = places.get(path);
    if (names === undefined) places.set(path, [name]);
    else if (!names.includes(name)) names.push(name);
  };
  const index = arrayIdOf(job.id) === null ? null : String(subjobIndex(job.id));
  for (const [attribute, letter] of OUTPUTS) {
    const text = job.attrs[attribute];
    if (typeof text !== "string") continue;
    const { host, path } = parseHostPath(withIndex(text, index));
    if (host !== null && means(host)) add(path, literal(outputName(job.id, letter)));
  }
  for (const { local, path } of staged(job, "stageout", means)) add(path, lastName(local));
  return places;
}

function staged(job: Job, name: "stagein" | "stageout", means: (host: string) => boolean): readonly StageItemText[] {
  const items = job.attrs[name];
  if (!Array.isArray(items)) return [];
  return items.flatMap((text) => {
    const item = typeof text === "string" ? parseStageItem(text) : null;
    return item !== null && means(item.host) ? [item] : [];
  });
}
