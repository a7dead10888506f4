// Which jobs are preempted for which (docs/reference/scheduler.md 8): jobs, attributes of the scheduler => preemptions and
// starts, and the log.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createFairshare } from "#model/fairshare.ts";
import { parseResourceGroup } from "#model/resource-group.ts";
import type { SchedQueue } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import type { CycleInput } from "#sched/cycle/result.ts";
import { NO_MEMORY } from "#sched/cycle/result.ts";
import { parseDedicatedTime } from "#sched/shapes/dedicated-time.ts";
import { UTC } from "#sched/shapes/local-time.ts";
import type { Policy } from "#sched/shapes/policy.ts";
import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import type { World } from "../world.ts";
import { decisionTexts, logTexts, queue, run } from "../world.ts";

const NOW_S = 1_000_000;
const FULL = "Not Running: Not enough free nodes available";
const QUEUES = [queue("workq"), queue("mid", { Priority: 149 }), queue("express", { Priority: 150 }), queue("urgent", { Priority: 200 })];
const queues = (...more: SchedQueue[]): Partial<World> => ({
  queues: [...QUEUES.filter(({ name }) => !more.some((one) => one.name === name)), ...more],
});

type More = Partial<World> & {
  readonly policy?: Partial<Policy>;
  readonly input?: Partial<CycleInput>;
  readonly book?: Partial<PolicyBook>;
  /** lines of the log, without event and class: `object;text` */
  readonly log?: readonly string[];
  readonly silent?: RegExp;
};
type Row = readonly [title: string, jobs: string, decisions: readonly string[], more?: More];

const order = (preempt_order: string): More => ({ sched: { preempt_order } });
const prio = (preempt_prio: string): Record<string, unknown> => ({ preempt_prio });
const soft = (users: Record<string, number>): Record<string, unknown> => ({ max_run_soft: users });
const shares = (usage: Record<string, number>): More => {
  const { tree } = parseResourceGroup("alice 20 root 50\nbob 21 root 50\n", 0);
  return {
    policy: { fair_share: true },
    book: { fairshare: tree },
    input: { fairshare: createFairshare(tree, { last_decay_s: NOW_S, usage, running: {} }, NOW_S) },
  };
};
const LIMITS = "express_queue, normal_jobs, server_softlimits, queue_softlimits";

// biome-ignore format: a table
const ROWS: readonly Row[] = [
  // levels
  ["a job of an express queue preempts a normal one",         "1 R (a:ncpus=4); 2 ncpus=2 @express",               ["1 SCR for 2", "2=(a:ncpus=2)"],
    { log: ["2;Employing preemption to try and run high priority job.", "1;Simulation: preempting job", "2;Simulation: Preempted enough work to run job"] }],
  ["a queue below preempt_queue_prio is none",                "1 R (a:ncpus=4); 2 ncpus=2 @mid",                   [`2: ${FULL}`], { silent: /preempt/i }],
  ["preempt_queue_prio raised",                               "1 R (a:ncpus=4); 2 ncpus=2 @express",               [`2: ${FULL}`], { sched: { preempt_queue_prio: 151 } }],
  ["preempt_queue_prio lowered",                              "1 R (a:ncpus=4); 2 ncpus=2 @mid",                   ["1 SCR for 2", "2=(a:ncpus=2)"], { sched: { preempt_queue_prio: 149 } }],
  ["nobody preempts his like",                                "1 R (a:ncpus=4) @express; 2 ncpus=2 @express",      [`2: ${FULL}`], { silent: /preempt/i }],
  ["express queues stand in the order of their Priority",     "1 R (a:ncpus=4) @express; 2 ncpus=2 @urgent",       ["1 SCR for 2", "2=(a:ncpus=2)"]],
  ["and not the other way round",                             "1 R (a:ncpus=4) @urgent; 2 ncpus=2 @express",       [`2: ${FULL}`]],
  ["preempt_prio without express_queue: all are normal",      "1 R (a:ncpus=4); 2 ncpus=2 @urgent",                [`2: ${FULL}`], { sched: prio("normal_jobs") }],
  ["normal_jobs above express_queue",                         "1 R (a:ncpus=4) @express; 2 ncpus=2",               ["1 SCR for 2", "2=(a:ncpus=2)"], { sched: prio("normal_jobs, express_queue") }],
  ["preemptive_sched False",                                  "1 R (a:ncpus=4); 2 ncpus=2 @express",               [`2: ${FULL}`], { policy: { preemptive_sched: false }, silent: /preempt/i }],
  ["qrun stands above all levels",                            "1 R (a:ncpus=4) @urgent; 2 ncpus=2",                ["1 SCR for 2", "2=(a:ncpus=2)"], { input: { command: SCHED_COMMAND.AJOB, job: "2" } }],
  ["a job of a running reservation neither goes nor makes others go", "1 R (a:ncpus=2) in=R1; 2 ncpus=3 @express",  ["2: Not Running: Insufficient amount of resource: ncpus (R: 3 A: 2 T: 4)"], { resvs: "R1 RN ncpus=2 100-2000000=(a:ncpus=2)", queues: [...QUEUES, queue("R1")] }],
  // soft limits
  ["over the server's soft limit: below normal jobs",         "1 R (a:ncpus=2) u=bob stime=1; 2 R (a:ncpus=2) u=bob stime=2; 3 ncpus=2 u=alice", ["2 SCR for 3", "3=(a:ncpus=2)"], { server: soft({ "u:bob": 1 }), sched: prio(LIMITS) }],
  ["over the queue's soft limit: below normal jobs",          "1 R (a:ncpus=2) u=bob stime=1; 2 R (a:ncpus=2) u=bob stime=2; 3 ncpus=2 u=alice", ["2 SCR for 3", "3=(a:ncpus=2)"], { ...queues(queue("workq", soft({ "u:PBS_GENERIC": 1 }))), sched: prio(LIMITS) }],
  ["as many as the soft limit are not over it",               "1 R (a:ncpus=4) u=bob; 2 ncpus=2 u=alice",          [`2: ${FULL}`], { server: soft({ "u:bob": 1 }), sched: prio(LIMITS) }],
  ["a soft limit of a resource",                              "1 R (a:ncpus=4) u=bob; 2 ncpus=2 u=alice",          ["1 SCR for 2", "2=(a:ncpus=2)"], { server: { max_run_res_soft: { ncpus: { "u:bob": 3 } } }, sched: prio(LIMITS) }],
  ["a soft limit of a resource over all: who asks for none of it is not over it", "1 R (a:ncpus=4:mem=2gb) u=bob mem=2gb; 2 ncpus=2 u=alice", ["1 SCR for 2", "2=(a:ncpus=2)"],
    { nodes: "a ncpus=4 mem=8gb", server: { max_run_res_soft: { mem: { "o:PBS_ALL": "1gb" } } }, sched: prio(LIMITS) }],
  ["nor is the owner's other job",                            "1 R (a:ncpus=2:mem=2gb) u=bob mem=2gb stime=1; 2 R (a:ncpus=2) u=bob stime=2; 3 ncpus=2 u=alice", ["1 SCR for 3", "3=(a:ncpus=2)"],
    { nodes: "a ncpus=4 mem=8gb", server: { max_run_res_soft: { mem: { "u:PBS_GENERIC": "1gb" } } }, sched: prio(LIMITS) }],
  ["a soft limit of a group, of a project, of all",           "1 R (a:ncpus=2) u=bob g=staff stime=1; 2 R (a:ncpus=2) u=carl g=staff stime=2; 3 ncpus=1 u=alice", ["2 SCR for 3", "3=(a:ncpus=1)"], { server: soft({ "g:staff": 1 }), sched: prio(LIMITS) }],
  ["who is over two is of the level named a+b",               "1 R (a:ncpus=2) u=bob stime=1; 2 R (a:ncpus=2) u=bob stime=2; 3 R (b:ncpus=4) u=carl stime=9; 4 ncpus=2 u=alice", ["2 SCR for 4", "4=(a:ncpus=2)"],
    { nodes: "a ncpus=4; b ncpus=4", ...queues(queue("workq", soft({ "u:bob": 1 }))), server: { ...soft({ "u:bob": 1 }), max_run_res_soft: { ncpus: { "u:carl": 3 } } }, sched: prio("normal_jobs, server_softlimits, server_softlimits+queue_softlimits") }],
  ["soft limits that preempt_prio does not name: normal jobs", "1 R (a:ncpus=2) u=bob; 2 R (a:ncpus=2) u=bob; 3 ncpus=2 u=alice", [`3: ${FULL}`], { server: soft({ "u:bob": 1 }) }],
  ["who would lose the level by starting does not start",     "1 R (a:ncpus=4) u=carl; 2 ncpus=2 u=bob",           [`2: ${FULL}`], { server: soft({ "u:bob": 0, "u:carl": 0 }), sched: prio(LIMITS), log: ["2;Job not run because it would immediately be preemptable."] }],
  ["whose going would lift somebody above it stays",          "1 R (a:ncpus=1) u=bob stime=1; 2 R (a:ncpus=1) u=bob stime=2; 3 R (a:ncpus=1) u=alice; 4 R (a:ncpus=1) u=alice; 5 ncpus=1 u=alice", [`5: ${FULL}`],
    { ...queues(queue("workq", soft({ "u:bob": 1 }))), server: soft({ "u:alice": 1 }), sched: prio(LIMITS), log: ["2;Preempting job will escalate its priority or priority of other jobs, not preempting it"] }],
  // fairshare
  ["over the share: below normal jobs",                       "1 R (a:ncpus=4) u=alice; 2 ncpus=2 u=bob",          ["1 SCR for 2", "2=(a:ncpus=2)"], { ...shares({ alice: 900, bob: 10 }), sched: prio("normal_jobs, fairshare") }],
  ["within the share: a normal job",                          "1 R (a:ncpus=4) u=bob; 2 ncpus=2 u=bob",            [`2: ${FULL}`], { ...shares({ alice: 900, bob: 10 }), sched: prio("normal_jobs, fairshare") }],
  ["over the share without fair_share: a normal job",         "1 R (a:ncpus=4) u=alice; 2 ncpus=2 u=bob",          [`2: ${FULL}`], { ...shares({ alice: 900, bob: 10 }), policy: {}, sched: prio("normal_jobs, fairshare") }],
  // choice of victims
  ["of one level the one that was started last",              "1 R (a:ncpus=2) stime=5; 2 R (a:ncpus=2) stime=9; 3 R (b:ncpus=2) stime=7; 4 R (b:ncpus=2) stime=1; 5 ncpus=2 @express", ["2 SCR for 5", "5=(a:ncpus=2)"], { nodes: "a ncpus=4; b ncpus=4" }],
  ["the lowest level before the last start",                  "1 R (a:ncpus=2) stime=5; 2 R (a:ncpus=2) @express stime=9; 3 ncpus=2 @urgent", ["1 SCR for 3", "3=(a:ncpus=2)"]],
  ["preempt_sort unset is min_time_since_start",              "1 R (a:ncpus=2) stime=9; 2 R (a:ncpus=2) stime=5; 3 ncpus=2 @express", ["1 SCR for 3", "3=(a:ncpus=2)"], { sched: {} }],
  ["as many as it takes",                                     "1 R (a:ncpus=1) stime=1; 2 R (a:ncpus=1) stime=2; 3 R (a:ncpus=1) stime=3; 4 R (a:ncpus=1) stime=4; 5 ncpus=3 @express", ["4 SCR for 5", "3 SCR for 5", "2 SCR for 5", "5=(a:ncpus=3)"]],
  ["who need not go stays",                                   "1 R (a:ncpus=3) stime=1; 2 R (a:ncpus=1) stime=2; 3 ncpus=3 @express", ["1 SCR for 3", "3=(a:ncpus=3)"], { log: ["2;Simulation: preemption of job not needed."] }],
  ["what is free is taken first",                             "1 R (a:ncpus=2); 2 R (a:ncpus=1); 3 ncpus=1 @express; 4 ncpus=2 @express", ["3=(a:ncpus=1)", "1 SCR for 4", "4=(a:ncpus=2)"]],
  ["who has nothing of what is lacking stays",                "1 R (a:ncpus=1) stime=9; 2 R (b:ncpus=4) stime=1; 3 ncpus=4:vnode=b @express", ["2 SCR for 3", "3=(b:ncpus=4)"], { nodes: "a ncpus=4; b ncpus=4" }],
  ["all of them would not do: nobody goes",                   "1 R (a:ncpus=2); 2 R (a:ncpus=2) @urgent; 3 ncpus=3 @express", [`3: ${FULL}`], { silent: /Simulation: preempting/ }],
  ["a full vnode stays closed to who asks for no cpu",        "1 R (a:ncpus=4); 2 ncpus=0 @express",               [`2: ${FULL}`]],
  ["a vnode that is down makes no room",                      "1 R (a:ncpus=2); 2 ncpus=3 @express",               ["2: Not Running: Not enough free nodes available"], { nodes: "a ncpus=4 :down", silent: /Simulation/ }],
  ["a run limit is lifted by those that count for it",        "1 R (a:ncpus=1) u=alice stime=9; 2 R (a:ncpus=1) u=bob stime=1; 3 ncpus=1 u=bob @express", ["2 SCR for 3", "3=(a:ncpus=1)"], { server: { max_run: { "u:bob": 1 } } }],
  ["a server's resource",                                     "1 R (a:ncpus=1) lic=2 stime=1; 2 R (a:ncpus=1) stime=9; 3 ncpus=1 lic=1 @express", ["1 SCR for 3", "3=(a:ncpus=1)"],
    { server: { resources_available: { lic: 2 } }, assigned: { lic: 2 }, resources: [{ name: "lic", type: "long", flags: "q" }], policy: { resources: new Set(["ncpus", "lic"]) } }],
  ["a job whose preemption failed is left alone for a while", "1 R (a:ncpus=2) stime=9; 2 R (a:ncpus=2) stime=1; 3 ncpus=2 @express", ["2 SCR for 3", "3=(a:ncpus=2)"], { input: { memory: { ...NO_MEMORY, failed_victims: new Map([["1", NOW_S + 1]]) } } }],
  ["and not longer",                                          "1 R (a:ncpus=2) stime=9; 2 R (a:ncpus=2) stime=1; 3 ncpus=2 @express", ["1 SCR for 3", "3=(a:ncpus=2)"], { input: { memory: { ...NO_MEMORY, failed_victims: new Map([["1", NOW_S]]) } } }],
  ["an array's next subjob preempts",                         "1 R (a:ncpus=2) stime=1; 2 R (a:ncpus=2) stime=2; 3[] sub=1-3%2 ncpus=2 @express", ["2 SCR for 3[1]", "3[1]=(a:ncpus=2)", "1 SCR for 3[2]", "3[2]=(a:ncpus=2)"]],
  ["an exclusive job needs the whole vnode",                  "1 R (a:ncpus=1) stime=1; 2 R (a:ncpus=1) stime=2; 3 ncpus=1 excl @express", ["2 SCR for 3", "1 SCR for 3", "3=(a:ncpus=1)"]],
  ["chunks on several vnodes",                                "1 R (a:ncpus=4) stime=1; 2 R (b:ncpus=4) stime=2; 3 2:ncpus=4 scatter @express", ["2 SCR for 3", "1 SCR for 3", "3=(a:ncpus=4)+(b:ncpus=4)"], { nodes: "a ncpus=4; b ncpus=4" }],
  ["who was made room for comes before who was suspended",    "1 S (a:ncpus=2) ptime=5; 2 R (a:ncpus=4); 3 ncpus=4 @express", ["2 SCR for 3", "3=(a:ncpus=4)", `1: ${FULL}`]],
  // methods
  ["preempt_order: methods in their order",                   "1 R (a:ncpus=4); 2 @express",                       ["1 RS for 2", "2=(a:ncpus=1)"], order("RS")],
  ["D deletes",                                               "1 R (a:ncpus=4) norerun nocheckpoint; 2 @express",  ["1 D for 2", "2=(a:ncpus=1)"], order("CRD")],
  ["R needs a rerunnable job",                                "1 R (a:ncpus=4) norerun; 2 @express",               ["1 SC for 2", "2=(a:ncpus=1)"], order("RSC")],
  ["C needs a job that may be checkpointed",                  "1 R (a:ncpus=4) nocheckpoint; 2 @express",          ["1 SR for 2", "2=(a:ncpus=1)"], order("SCR")],
  ["no method that it allows: it stays",                      "1 R (a:ncpus=4) norerun; 2 @express",               [`2: ${FULL}`], order("R")],
  ["by the part of the walltime that is left: much",          "1 R (a:ncpus=4) walltime=100 used=walltime:20; 2 @express", ["1 SCR for 2", "2=(a:ncpus=1)"], order("SCR 80 SC 50 S")],
  ["by the part of the walltime that is left: less",          "1 R (a:ncpus=4) walltime=100 used=walltime:21; 2 @express", ["1 SC for 2", "2=(a:ncpus=1)"], order("SCR 80 SC 50 S")],
  ["by the part of the walltime that is left: little",        "1 R (a:ncpus=4) walltime=100 used=walltime:51; 2 @express", ["1 S for 2", "2=(a:ncpus=1)"], order("SCR 80 SC 50 S")],
  ["usage that the mom has not told for a while: by its start", `1 R (a:ncpus=4) walltime=100 stime=${NOW_S - 60} used=walltime:0; 2 @express`, ["1 R for 2", "2=(a:ncpus=1)"], order("S 50 R")],
  ["without usage: by its start",                             `1 R (a:ncpus=4) walltime=100 stime=${NOW_S - 60}; 2 @express`, ["1 S for 2", "2=(a:ncpus=1)"], order("SCR 80 SC 50 S")],
  ["without walltime: the first",                             "1 R (a:ncpus=4) used=walltime:99; 2 @express",      ["1 SCR for 2", "2=(a:ncpus=1)"], order("SCR 80 SC 50 S")],
  // targets
  ["preempt_targets: a queue",                                "1 R (a:ncpus=2) @mid stime=1; 2 R (a:ncpus=2) stime=9; 3 ncpus=2 @express %preempt_targets=queue=mid", ["1 SCR for 3", "3=(a:ncpus=2)"], { log: ["3;Limited running jobs used for preemption from 2 to 1"] }],
  ["preempt_targets: a resource",                             "1 R (a:ncpus=3) stime=1; 2 R (a:ncpus=1) stime=9; 3 ncpus=1 @express %preempt_targets=Resource_List.ncpus=3", ["1 SCR for 3", "3=(a:ncpus=1)"]],
  ["preempt_targets: two queues",                             "1 R (a:ncpus=2) @mid stime=1; 2 R (a:ncpus=2) stime=9; 3 ncpus=4 @express %preempt_targets=queue=mid,queue=workq", ["2 SCR for 3", "1 SCR for 3", "3=(a:ncpus=4)"]],
  ["preempt_targets: two queues after one name",              "1 R (a:ncpus=2) @mid stime=1; 2 R (a:ncpus=2) stime=9; 3 ncpus=4 @express %preempt_targets=queue=mid,workq", ["2 SCR for 3", "1 SCR for 3", "3=(a:ncpus=4)"]],
  ["preempt_targets: nobody is one",                          "1 R (a:ncpus=4); 2 ncpus=2 @express %preempt_targets=queue=mid", [`2: ${FULL}`], { log: ["2;Limited running jobs used for preemption from 1 to 0: No jobs to preempt"] }],
  ["preempt_targets: None",                                   "1 R (a:ncpus=4); 2 ncpus=2 @express %preempt_targets=None", [`2: ${FULL}`], { log: ["2;No preemption set specified for the job: Job will not preempt"] }],
  ["preempt_targets_enable False",                            "1 R (a:ncpus=4); 2 ncpus=2 @express %preempt_targets=None", ["1 SCR for 2", "2=(a:ncpus=2)"], { sched: { preempt_targets_enable: false } }],
  // number of attempts, and permitted reasons
  ["preempt_attempts",                                        "1 R (a:ncpus=2) stime=1; 2 R (a:ncpus=2) stime=2; 3 ncpus=1:mem=1gb @express; 4 ncpus=2 @express", ["2 SCR for 3", "3=(a:ncpus=1:mem=1048576kb)", "4: Not Running: Insufficient amount of resource: ncpus (R: 2 A: 1 T: 4)"], { nodes: "a ncpus=4 mem=4gb", policy: { preempt_attempts: 1 }, log: ["4;Not attempting to preempt: over max cycle preempt limit"] }],
  ["what never fits does not try",                            "1 R (a:ncpus=4); 2 ncpus=9 @express",               ["2: Can Never Run: Insufficient amount of resource: ncpus (R: 9 A: 4 T: 4)"], { log: ["2;Preempt: Can not preempt to run job: Insufficient amount of resource: ncpus (R: 9 A: 4 T: 4)"] }],
  ["dedicated time",                                          "1 R (a:ncpus=2); 2 ncpus=2 walltime=9000 @express", ["2: Not Running: Job would cross dedicated time boundary"], { book: { dedicated: parseDedicatedTime("01/12/1970 14:00 01/12/1970 16:00", UTC).times }, log: ["2;Preempt: Can not preempt to run job: Job would not finish before dedicated time"] }],
  ["a stopped queue",                                         "1 R (a:ncpus=4); 2 ncpus=2 @express",               ["2: Not Running: Queue not started."], { ...queues(queue("express", { Priority: 150, started: false })), silent: /preempt/i }],
  ["max_run_subjobs",                                         "1 R (a:ncpus=2); 2[] sub=2-5%1/1 ncpus=1 @express", ["2[]: Not Running: Number of concurrent running subjobs limit reached"]],
  ["a module of the chain that is not listed does nothing",   "1 R (a:ncpus=4); 2 ncpus=2 @express",               [`2: ${FULL}`], { book: { modules: ["limits", "time", "resources", "backfill"] } }],
];

for (const [title, jobs, decisions, more = {}] of ROWS) {
  test(`preemption: ${title}`, () => {
    const { policy, input, book, log = [], silent, ...world } = more;
    const result = run({ nodes: "a ncpus=4", queues: QUEUES, ...world, jobs }, policy, input, book);
    const gone = new Set(result.decisions.flatMap((decision) => (decision.kind === "preempt" ? [decision.job] : [])));
    const rest = { ...result, decisions: result.decisions.filter((decision) => decision.kind !== "comment" || !gone.has(decision.job)) };
    assert.deepEqual(decisionTexts(rest), decisions);
    const lines = logTexts(result).map((line) => line.split(";").slice(2).join(";"));
    for (const line of log) assert.ok(lines.includes(line), `${line} is not in\n${lines.join("\n")}`);
    if (silent !== undefined) assert.doesNotMatch(lines.join("\n"), silent);
  });
}
