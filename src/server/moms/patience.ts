// How long a run over several hosts waits for its hosts (docs/reference/execution.md 3, 7). The configuration of its
// mother superior decides. Without one, the time is that of the hooks which sisters run before the start.

import { hooksOf } from "#model/tables/hook.ts";
import type { Kernel } from "../engine/kernel.ts";

/** The time if there are no hooks. */
const HOOKLESS_S = 30;
const DOWNTIME_S_DEFAULT = 300;

type Patient = Pick<Kernel, "moms" | "state">;

const alarms_s = ({ state }: Patient, event: string): number =>
  hooksOf(state.hooks.values(), event).reduce((sum, { attrs }) => sum + attrs.alarm, 0);

const wordOf = ({ moms }: Patient, mother: string) => moms.by_host.get(mother.toLowerCase())?.patience ?? {};

/** $sister_join_job_alarm, in ms: the time for sisters until their execjob_begin hooks have accepted the job. mother: host. */
export const joinWait_ms = (kernel: Patient, mother: string): number =>
  1000 * (wordOf(kernel, mother).join_s ?? (alarms_s(kernel, "execjob_begin") || HOOKLESS_S));

/** $job_launch_delay, in ms: the time for their execjob_prologue hooks, from when all sisters have joined. */
export const launchWait_ms = (kernel: Patient, mother: string): number =>
  1000 * (wordOf(kernel, mother).launch_s ?? (alarms_s(kernel, "execjob_prologue") || HOOKLESS_S));

/** $max_poll_downtime, in ms: how long a sister may be away. */
export const downtime_ms = (kernel: Patient, mother: string): number => 1000 * (wordOf(kernel, mother).downtime_s ?? DOWNTIME_S_DEFAULT);
