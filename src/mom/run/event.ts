// All events that the mom's core receives: from the server, the starter, the file agent and the clock.

import type { SequenceEnd } from "#hooks/run/hook-sequence.ts";
import type { MomGrace, MomHooks, MomJob, MomVnode, ServerToMom } from "#protocol/mom-link.ts";
import type { Measure } from "../config/node-load.ts";
import type { Finished, Prepared } from "../job/agent-link.ts";
import type { ScriptEnd } from "../job/pelog.ts";
import type { Owner } from "../job/plan.ts";
import type { ExitedRun, RunKey, StartedRun, StarterToMom } from "../job/starter-link.ts";
import type { Seen } from "../job/usage.ts";
import type { MomConfig, SavedRun } from "./state.ts";
import type { TaskAsker, TaskWanted } from "./task-question.ts";

export type MomEvent =
  /** the link to the server is connected: a hello is due */
  | { readonly kind: "connected" }
  | { readonly kind: "disconnected" }
  /** the server has answered a message that the mom sent at this time; grace null: no server runs (cut-off.ts Z1) */
  | { readonly kind: "contact"; readonly at_ms: number; readonly grace: MomGrace | null }
  | { readonly kind: "welcome"; readonly data: ServerToMom["mom-welcome"] }
  /** a request to start a run. owner null: the user does not exist here */
  | { readonly kind: "start"; readonly job: MomJob; readonly owner: Owner | null }
  /** all starts of one frame of the server have been passed on. runs: those starts */
  | { readonly kind: "starts-read"; readonly runs: readonly RunKey[] }
  /** the server still wants these runs, which the mom has accepted */
  | { readonly kind: "confirmed"; readonly runs: readonly RunKey[] }
  | { readonly kind: "signal"; readonly data: ServerToMom["mom-signal"] }
  | { readonly kind: "terminate"; readonly data: ServerToMom["mom-terminate"] }
  | { readonly kind: "modify"; readonly data: ServerToMom["mom-modify"] }
  | { readonly kind: "message"; readonly data: ServerToMom["mom-message"] }
  /** a request of a task or of another mom of the job. asked: number of the request, which the answer must name */
  | { readonly kind: "task-asked"; readonly asked: number; readonly by: TaskAsker; readonly wanted: TaskWanted }
  | { readonly kind: "task-signal"; readonly asked: number; readonly signal: number }
  /** the client of this request is gone; the tasks that it started continue */
  | { readonly kind: "task-deserted"; readonly asked: number }
  | { readonly kind: "sisters"; readonly data: ServerToMom["mom-sisters"] }
  | { readonly kind: "acknowledged"; readonly data: ServerToMom["mom-obit-ack"] }
  | { readonly kind: "discard"; readonly job: string }
  /** new hooks. from: the server has sent them, or they were read from the disk */
  | { readonly kind: "hooks"; readonly hooks: MomHooks; readonly from: "server" | "disk" }
  /** answers to the actions run-hooks and run-script */
  | { readonly kind: "hooked"; readonly step: number; readonly end: SequenceEnd }
  | { readonly kind: "scripted"; readonly step: number; readonly end: ScriptEnd }
  /** answer to the action run-action */
  | { readonly kind: "acted"; readonly step: number; readonly end: ScriptEnd }
  /** the mom has started, so the exechost_startup hooks must run */
  | { readonly kind: "startup" }
  | { readonly kind: "vnodes"; readonly vnodes: readonly MomVnode[] }
  | { readonly kind: "prepared"; readonly outcome: Prepared }
  | { readonly kind: "finished"; readonly outcome: Finished }
  /** answer to an action `append` that names its run */
  | { readonly kind: "told"; readonly run: RunKey }
  /** answer to the action `purge` */
  | { readonly kind: "purged"; readonly job: string }
  | { readonly kind: "started"; readonly run: StartedRun }
  | { readonly kind: "start-failed"; readonly run: StarterToMom["starter-failed"]["runs"][number] }
  | { readonly kind: "exited"; readonly run: ExitedRun }
  | { readonly kind: "adopted"; readonly run: StarterToMom["starter-adopted"]["runs"][number] }
  /** the terminal of an interactive run is gone */
  | { readonly kind: "hung-up"; readonly run: RunKey }
  /** records found at the start of the mom */
  | { readonly kind: "recovered"; readonly saved: readonly SavedRun[] }
  /** the starter's state, sent at every connect */
  | { readonly kind: "starter-state"; readonly data: StarterToMom["starter-state"] }
  /** usage sums by the pid of each top process */
  | { readonly kind: "sampled"; readonly seen: ReadonlyMap<number, Seen> }
  /** the load of the host, and the time since somebody last typed on it */
  | { readonly kind: "measured"; readonly measure: Measure }
  /** present values of the site's own resources in the configuration */
  | { readonly kind: "site"; readonly resources: { readonly [name: string]: string } }
  | { readonly kind: "configured"; readonly config: MomConfig }
  | { readonly kind: "tick" }
  | { readonly kind: "stop"; readonly manner: "kill" | "leave" };
