// Settings that make schedulers plan, promise and revoke: strict order and top jobs, kept plans, jobs with several lengths,
// preemption and its consequences. They are drawn independently of the other settings of a scenario, so that a simulated
// complex may have all or none of them.

import type { AttrValueText, ManagerRequest, Request } from "#protocol/messages.ts";
import type { Policy } from "#sched/shapes/policy.ts";
import type { Prng } from "#support/prng.ts";
import { set } from "./manager-request.ts";
import type { Scenario } from "./scenario.ts";

/** Draws whether and how schedulers plan. */
export function planningPolicy(random: Prng, policy: Policy): { readonly policy: Policy; readonly keeps_plans: boolean } {
  const strict_ordering = policy.strict_ordering || random.chance(0.4);
  return {
    policy: { ...policy, strict_ordering, matcher: random.chance(0.3) ? "best_fit" : "first_fit" },
    keeps_plans: strict_ordering && random.chance(0.3),
  };
}

/**
 * Returns the same scenario with schedulers whose published starts can be checked (checks/promises.ts): the order of jobs is
 * known, and there are no hooks and no clock changes.
 */
export function judgedScenario(drawn: Scenario): Scenario {
  return {
    ...drawn,
    plans: true,
    policy: { ...drawn.policy, strict_ordering: true, round_robin: false, job_sort_key: [], preemptive_sched: false },
    setup: drawn.setup.filter((request) => request.kind !== "import-hook" && !(request.kind === "manager" && request.object === "hook")),
    // Jobs on far hosts start later than the scheduler has planned.
    hosts: drawn.hosts.map((host) => ({ ...host, is_far: false })),
    faults: drawn.faults.filter((fault) => fault !== "set-clock" && fault !== "cut-host"),
    ops: drawn.ops.filter((op) => op !== "hook"),
  };
}

/** Draws requests that set backfill depths, express queues and effects of preemption. Queues and scheduler objects must exist. */
export function planningRequests(random: Prng, { scheds, queues }: Pick<Scenario, "scheds" | "queues">): ManagerRequest[] {
  const requests: ManagerRequest[] = [];
  if (random.chance(0.6)) requests.push(set("server", "", ["backfill_depth", String(random.int(0, 5))]));
  if (random.chance(0.3)) requests.push(set("server", "", ["clear_topjob_estimates_enable", "True"]));
  if (random.chance(0.2))
    requests.push(set("server", "", ["restrict_res_to_release_on_suspend", random.pick(["ncpus", "mem", "ncpus,mem"])]));
  if (random.chance(0.2)) requests.push(set("server", "", ["eligible_time_enable", "True"]));
  for (const { name, destinations } of queues) {
    if (destinations !== undefined) continue;
    if (random.chance(0.2)) requests.push(set("queue", name, ["backfill_depth", String(random.int(0, 3))]));
    if (random.chance(0.25)) requests.push(set("queue", name, ["Priority", String(random.int(150, 160))]));
  }
  for (const name of ["default", ...scheds.map((sched) => sched.name)]) {
    if (random.chance(0.5))
      requests.push(set("sched", name, ["preempt_order", random.pick(["S", "R", "D", "SCR", "RD", "SCR 80 S 50 R"])]));
    if (random.chance(0.3)) requests.push(set("sched", name, ["sched_preempt_enforce_resumption", "True"]));
    if (random.chance(0.3)) requests.push(set("sched", name, ["opt_backfill_fuzzy", random.pick(["off", "high", "10"])]));
  }
  return requests;
}

/** Draws attributes of a submission that give its run time and say whether it may be planned. */
export function planningAttributes(random: Prng): AttrValueText[] {
  const attrs: AttrValueText[] = [];
  const resource = (name: string, value: number): void => void attrs.push({ name: "Resource_List", resource: name, value: String(value) });
  const length = random.int(1, 10);
  if (length === 1) {
    const min_s = random.int(1, 60);
    resource("min_walltime", min_s);
    if (random.chance(0.6)) resource("max_walltime", min_s + random.int(0, 300));
  } else if (length === 2) {
    const soft_s = random.int(1, 60);
    resource("soft_walltime", soft_s);
    resource("walltime", soft_s + random.int(0, 60));
  }
  if (random.chance(0.05)) attrs.push({ name: "topjob_ineligible", value: "True" });
  return attrs;
}

/** Draws a request of a manager that changes settings of planning while the complex works. */
export function planningChange(random: Prng, { scheds, queues }: Pick<Scenario, "scheds" | "queues">): Request {
  const sched = random.pick(["default", ...scheds.map(({ name }) => name)]);
  const queue = random.pick(queues.filter(({ destinations }) => destinations === undefined)).name;
  return random.pick<Request>([
    set("server", "", ["backfill_depth", String(random.int(0, 5))]),
    set("server", "", ["clear_topjob_estimates_enable", random.pick(["True", "False"])]),
    set("queue", queue, ["backfill_depth", String(random.int(0, 3))]),
    set("queue", queue, ["Priority", String(random.pick([0, 3, 150, 155]))]),
    set("sched", sched, ["preempt_order", random.pick(["S", "R", "D", "SCR"])]),
    set("sched", sched, ["sched_preempt_enforce_resumption", random.pick(["True", "False"])]),
    set("sched", sched, ["opt_backfill_fuzzy", random.pick(["off", "low", "high"])]),
  ]);
}
