// Module `job_checker`: does a scheduler's part of the work when jobs end or are refused. (The server writes the accounting
// and removes the jobs.) This module counts the jobs that the scheduler started, the jobs that have ended, and the time that
// jobs waited. It also requests a cycle after the start of a job was refused, so that the job is tried again soon (Maui's
// deferred jobs).
//
// J1. Nothing is kept about a job after it has been counted and the scheduler does not see it any more.

import { LOG_EVENT } from "#support/log-event.ts";
import type { CycleReport, ModuleWorld, OptionRow, ServiceModule } from "../../shapes/module.ts";
import { optionReader } from "./options.ts";

const OPTIONS: readonly OptionRow[] = [
  { name: "retry_time", default: "60", help: "seconds after which a job whose start was refused is tried again; 0: not by this module" },
  { name: "account_time", default: "3600", help: "seconds between lines about started and ended jobs in the log; 0: none" },
];
/** Seconds between searches for jobs that no longer exist. The time of a search grows with the number of started jobs. */
const LOOK_S = 10;

type Account = { started: number; ended: number; refused: number; wait_s: number; wait_s_max: number };
const EMPTY: Account = { started: 0, ended: 0, refused: 0, wait_s: 0, wait_s_max: 0 };

export function jobChecker(world: ModuleWorld): ServiceModule {
  const options = optionReader(OPTIONS, world.options);
  const retry_s = options.whole("retry_time");
  const account_s = options.whole("account_time");
  /** ids of the jobs that this scheduler started and that have not ended */
  const running = new Set<string>();
  /** for each job, how often its start has been refused in succession */
  const refused = new Map<string, number>();
  let account: Account = { ...EMPTY };
  let accounted_s = Math.floor(world.now_ms() / 1000);
  let looked_s = 0;
  let retry: NodeJS.Timeout | null = null;

  function takeStarts({ universe, decisions, verdicts, now_s }: CycleReport): void {
    decisions.forEach((decision, at) => {
      if (decision.kind !== "run") return;
      if (verdicts[at]?.ok !== true) {
        account.refused++;
        refused.set(decision.job, (refused.get(decision.job) ?? 0) + 1);
        return;
      }
      refused.delete(decision.job);
      running.add(decision.job);
      const job = universe.jobs.get(decision.job);
      const wait_s = Math.max(0, now_s - (job?.etime_s ?? job?.qtime_s ?? now_s));
      account.started++;
      account.wait_s += wait_s;
      account.wait_s_max = Math.max(account.wait_s_max, wait_s);
    });
  }

  function forgetGone({ universe }: CycleReport): void {
    for (const id of running) {
      const state = universe.jobs.get(id)?.state;
      if (state !== undefined && state !== "Q" && state !== "H" && state !== "W") continue;
      running.delete(id);
      if (state === undefined) account.ended++;
    }
    for (const id of refused.keys()) if (universe.jobs.get(id)?.state !== "Q") refused.delete(id);
  }

  function tellAccount(now_s: number): void {
    const { started, ended, refused: refusals, wait_s, wait_s_max } = account;
    if (started + ended + refusals > 0) {
      const waits = started === 0 ? "" : `; waits: mean ${Math.round(wait_s / started)} s, longest ${wait_s_max} s`;
      const text = `in ${now_s - accounted_s} s: ${started} jobs started, ${ended} ended, ${refusals} starts refused${waits}`;
      world.log(text, LOG_EVENT.DEBUG);
    }
    account = { ...EMPTY };
    accounted_s = now_s;
  }

  /** Starts a timer that requests a cycle. One timer is enough for all jobs, because a cycle tries every job. */
  function retryLater(): void {
    if (retry_s === 0 || refused.size === 0 || retry !== null) return;
    retry = setTimeout(() => {
      retry = null;
      world.wake();
    }, retry_s * 1000).unref();
  }

  return {
    kind: "service",
    name: "job_checker",
    options: OPTIONS,
    cycle(report) {
      const { now_s } = report;
      if (now_s - looked_s >= LOOK_S || now_s < looked_s) {
        looked_s = now_s;
        forgetGone(report);
      }
      // For the scheduler, jobs started in this cycle are still queued, so they are checked after the next cycle.
      takeStarts(report);
      if (account_s > 0 && now_s - accounted_s >= account_s) tellAccount(now_s);
      retryLater();
    },
    shutdown() {
      if (retry !== null) clearTimeout(retry);
      if (account_s > 0) tellAccount(Math.floor(world.now_ms() / 1000));
    },
  };
}
