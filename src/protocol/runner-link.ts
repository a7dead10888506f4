// Messages between the server and pbs_runners, the controller of the backends (docs/runners.md). The controller connects to the server's socket and says runners-hello.
//
// I1. runners-work always has the whole picture: all backends, all demands, all runners. The controller computes from it alone what to ask for and what to cancel, so
//     that a lost or repeated frame does no harm.
// I2. The server records a runner, and commits the record, before the controller asks a backend for the runner (runners-ask, runners-asked). A record ends when the
//     runner has left, or when the controller says that it does not exist any more (runners-gone).

import type { Bucket } from "#model/request/bucket.ts";

/** A backend with its attributes by PBS name, with typed values. */
export type BackendWork = { readonly name: string; readonly partition: string; readonly attrs: { readonly [name: string]: unknown } };

/**
 * Jobs of one bucket that wait for a runner. ready: their number. priority: the highest priority among them. trial: some jobs of the bucket are held because no backend took a
 * runner for them; if no other job of the bucket waits, `ready` is 1, so that the backends are asked again.
 */
export type Demand = {
  readonly partition: string;
  readonly bucket: Bucket;
  readonly ready: number;
  readonly priority: number;
  readonly trial?: true;
};

/**
 * asked: it has not connected yet. idle, busy: it is or was connected, without or with jobs. lost: it has not been connected for so long that the controller
 * must ask its backend.
 */
export type RunnerDoing = "asked" | "idle" | "busy" | "lost";

/** draining: it takes no further job. away: it is not connected now, but was. */
export type RunnerWork = {
  readonly name: string;
  readonly backend: string;
  readonly serial: number;
  readonly index: number;
  readonly bucket: Bucket;
  readonly doing: RunnerDoing;
  readonly asked_s: number;
  readonly life_s: number;
  readonly remote?: string;
  readonly draining?: true;
  readonly away?: true;
};

export type RunnersToServer = {
  /** pongs: the controller answers runners-ping. A controller of an earlier release does not know that frame */
  "runners-hello": { readonly pid: number; readonly pongs?: true };
  /** number: that of the ping */
  "runners-pong": { readonly number: number };
  /** asks the server to record runners of a bucket. token: a number that the answer repeats. digests: for each runner, the SHA-256 of its secret token */
  "runners-ask": {
    readonly token: number;
    readonly backend: string;
    /** key of the bucket; if it is not among the demands of the server's last picture, the server refuses */
    readonly bucket: string;
    readonly life_s: number;
    readonly digests: readonly string[];
  };
  /** the ids that runners have in their backend, by name */
  "runners-seen": {
    readonly remotes: { readonly [name: string]: string };
    /** what the backend says about runners that wait, by name; runners without an entry: nothing. Absent: as before */
    readonly reasons?: { readonly [name: string]: string };
  };
  /** runners that do not exist in their backend. why: in the backend's words. preempted: the backend ended the runner, or its node failed */
  "runners-gone": { readonly runners: readonly { readonly name: string; readonly why: string; readonly preempted?: true }[] };
  /** runners that take no further job, because others need their place */
  "runners-drain": { readonly names: readonly string[] };
  /** whether a backend works. error: what it said when it failed, in its own words; null: it works */
  "runners-state": { readonly backend: string; readonly error: string | null };
  /** no backend of the partition can ever run a runner of this bucket. why: in the backend's words */
  "runners-impossible": { readonly bucket: string; readonly why: string };
};

export type ServerToRunners = {
  /** asks whether the controller is alive (src/server/runners/heartbeat.ts) */
  "runners-ping": { readonly number: number };
  "runners-refused": { readonly text: string };
  "runners-work": {
    readonly backends: readonly BackendWork[];
    readonly demands: readonly Demand[];
    readonly runners: readonly RunnerWork[];
  };
  /** serial null: the server has recorded no runners */
  "runners-asked": { readonly token: number; readonly serial: number | null };
  /** the process is not needed: it ends when backends have no runner left, unless a later picture has an enabled backend or a runner */
  "runners-quit": Record<string, never>;
};

/** Returns the name of a runner, which is also the name of its host and of its vnode. */
export const runnerName = (backend: string, serial: number, index: number): string => `${backend}-${serial}-${index}`;

/** The lock of pbs_runners, in runner_priv. */
export const RUNNERS_LOCK = "runners.lock";

/** Exit status of pbs_runners if another one has the lock. */
export const ANOTHER_RUNS = 3;
