// How long a run on several hosts waits for its hosts (docs/reference/execution.md 3, 7). The configuration of the mother
// superior decides. If it says nothing, the time is the sum of the alarms of the hooks that sisters run before the start.

import { hooksOf } from "#model/tables/hook.ts";
import type { Kernel } from "../engine/kernel.ts";

/** The time for a step of the start (join or prologue) if no hook has its event and the mother superior sets no time. */
const HOOKLESS_S = 30;
/** $max_poll_downtime of a mother superior whose configuration does not set it, or that is not connected. */
export const DOWNTIME_S_DEFAULT = 300;

type Patient = Pick<Kernel, "moms" | "state">;

const alarms_s = ({ state }: Patient, event: string): number =>
  hooksOf(state.hooks.values(), event).reduce((sum, { attrs }) => sum + attrs.alarm, 0);

const wordOf = ({ moms }: Patient, mother: string) => moms.by_host.get(mother.toLowerCase())?.patience ?? {};

/** $sister_join_job_alarm, in ms: the time in which the execjob_begin hooks of all sisters must accept the job. mother: the first host. */
export const joinWait_ms = (kernel: Patient, mother: string): number =>
  1000 * (wordOf(kernel, mother).join_s ?? (alarms_s(kernel, "execjob_begin") || HOOKLESS_S));

/** $job_launch_delay, in ms: the time for the execjob_prologue hooks of the sisters. It begins when all execjob_begin hooks have accepted the job. */
export const launchWait_ms = (kernel: Patient, mother: string): number =>
  1000 * (wordOf(kernel, mother).launch_s ?? (alarms_s(kernel, "execjob_prologue") || HOOKLESS_S));

/** $max_poll_downtime, in ms: how long the mom of a sister may be disconnected. */
export const downtime_ms = (kernel: Patient, mother: string): number => 1000 * (wordOf(kernel, mother).downtime_s ?? DOWNTIME_S_DEFAULT);
