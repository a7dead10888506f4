// Handles a host that others use (`$max_load`, `$kbd_idle`): the mom reports this to the server. If the site wants it, the
// mom also suspends the jobs of the host until the host is free again. Pure.

import { hostsOf } from "#model/request/host-entry.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Busyness, isBusy, type Measure, nextBusyness } from "../config/node-load.ts";
import { type Context, keyOf, log, save } from "./record.ts";
import type { Run } from "./state.ts";
import { beginEnding } from "./watch.ts";

/** Takes a new measurement of the host. */
export function measured(cx: Context, measure: Measure): void {
  const { state } = cx;
  const { node } = state.config;
  const before = state.busy;
  state.busy = nextBusyness(before, measure, { load: node.load, keyboard: node.kbd_idle }, cx.now_ms);
  if (isBusy(state.busy) !== isBusy(before)) tellBusy(cx, measure);
  const still = standsStill(state.busy, node.suspend_on_load);
  for (const run of [...state.runs.values()]) {
    if (still) standStill(cx, run);
    else if (run.idled) goOn(cx, run);
  }
}

function tellBusy(cx: Context, { load }: Measure): void {
  const { busy } = cx.state;
  const text = isBusy(busy) ? `node is busy: ${busy.load ? `load ${load.toFixed(2)}` : "somebody is typing"}` : "node is free again";
  cx.actions.push({ kind: "log", event: LOG_EVENT.SYSTEM, object: "pbs_mom", text, class: "Svr" });
  if (cx.state.welcomed) cx.actions.push({ kind: "send", type: "mom-busy", data: { busy: isBusy(busy) } });
}

const standsStill = (busy: Busyness, suspend_on_load: boolean): boolean => busy.keyboard || (busy.load && suspend_on_load);

function standStill(cx: Context, run: Run): void {
  if (run.phase.name !== "running" || run.phase.suspended_ms !== null || run.ending !== null) return;
  const { node, suspend_signal } = cx.state.config;
  if (hostsOf(run.job.exec_host).length > 1) {
    if (node.multinode_requeue) beginEnding(cx, run, "rerun", 0);
    return;
  }
  run.phase = { ...run.phase, suspended_ms: cx.now_ms };
  run.idled = true;
  cx.actions.push({ kind: "signal", run: keyOf(run), signal: suspend_signal });
  log(cx, LOG_EVENT.JOB, run.job.id, "suspended: the host is in use");
  save(cx, run);
  tellIdled(cx, run);
}

function goOn(cx: Context, run: Run): void {
  run.idled = false;
  if (run.phase.name !== "running" || run.phase.suspended_ms === null) return;
  run.suspended_total_ms += cx.now_ms - run.phase.suspended_ms;
  run.phase = { ...run.phase, suspended_ms: null };
  cx.actions.push({ kind: "signal", run: keyOf(run), signal: cx.state.config.resume_signal });
  log(cx, LOG_EVENT.JOB, run.job.id, "resumed: the host is free");
  save(cx, run);
  tellIdled(cx, run);
}

/** Tells the server whether the run is suspended because its host is in use. Called when that changes, and at every welcome while it is suspended. */
export function tellIdled(cx: Context, run: Run): void {
  if (cx.state.welcomed && run.phase.name === "running")
    cx.actions.push({ kind: "send", type: "mom-idled", data: { ...keyOf(run), idled: run.idled } });
}
