// Module `profiler`: watches the scheduler's process and the file system of its log. A problem is reported in the log and in
// the scheduler's comment until it ends.

import { statfsSync } from "node:fs";
import { getHeapStatistics } from "node:v8";
import { LOG_EVENT } from "#support/log-event.ts";
import type { ModuleWorld, OptionRow, ServiceModule } from "../../shapes/module.ts";
import { optionReader } from "./options.ts";

const OPTIONS: readonly OptionRow[] = [
  { name: "interval", default: "60", help: "seconds between looks" },
  { name: "heap_max", default: "85", help: "percent of the heap's limit that may be in use" },
  { name: "delay_max", default: "10", help: "seconds that the process may stand still; a long cycle is such a time" },
  { name: "disk_min", default: "100mb", help: "space that must be free where the log is" },
];
/** Interval in ms at which the profiler is to be called. If a call is late, the process did not run for a while. */
const BEAT_MS = 1000;
const MB = 1024 * 1024;

export function profiler(world: ModuleWorld): ServiceModule {
  const options = optionReader(OPTIONS, world.options);
  const interval_ms = options.whole("interval") * 1000;
  const heap_max = options.whole("heap_max");
  const delay_max_s = options.whole("delay_max");
  const disk_min = options.size("disk_min");
  let beat: NodeJS.Timeout | null = null;
  let beaten_ms = 0;
  let looked_ms = Number.NEGATIVE_INFINITY;
  let delay_ms_max = 0;
  let cycle_ms_max = 0;

  function onBeat(): void {
    const now_ms = performance.now();
    delay_ms_max = Math.max(delay_ms_max, now_ms - beaten_ms - BEAT_MS);
    beaten_ms = now_ms;
    if (now_ms - looked_ms >= interval_ms) look(now_ms);
  }

  function look(now_ms: number): void {
    looked_ms = now_ms;
    const { used_heap_size, heap_size_limit } = getHeapStatistics();
    const free = freeBytes(world.sched_log());
    const delay_s = delay_ms_max / 1000;
    const figures = `heap ${Math.round(used_heap_size / MB)} of ${Math.round(heap_size_limit / MB)} MB, longest stand ${delay_s.toFixed(3)} s`;
    world.log(
      `${figures}, longest cycle ${(cycle_ms_max / 1000).toFixed(3)} s, ${Math.floor(free / MB)} MB free for logs`,
      LOG_EVENT.DEBUG4,
    );
    const problems: string[] = [];
    if (used_heap_size > (heap_size_limit * heap_max) / 100)
      problems.push(`heap: ${Math.round(used_heap_size / MB)} of ${Math.round(heap_size_limit / MB)} MB in use`);
    if (delay_s > delay_max_s)
      problems.push(`stood still for ${delay_s.toFixed(1)} s, longest cycle ${(cycle_ms_max / 1000).toFixed(1)} s`);
    if (free < disk_min) problems.push(`${Math.floor(free / MB)} MB free in ${world.sched_log()}`);
    world.problem(problems.length === 0 ? null : problems.join(", "));
    delay_ms_max = 0;
    cycle_ms_max = 0;
  }

  return {
    kind: "service",
    name: "profiler",
    options: OPTIONS,
    start() {
      beaten_ms = performance.now();
      beat = setInterval(onBeat, BEAT_MS).unref();
    },
    cycle({ cycle_ms }) {
      cycle_ms_max = Math.max(cycle_ms_max, cycle_ms);
    },
    shutdown() {
      if (beat !== null) clearInterval(beat);
    },
  };
}

function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}
