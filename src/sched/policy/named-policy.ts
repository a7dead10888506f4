// Named policies (docs/policy.md): the attributes `policy` and `backfill.*` of a scheduler and the lines of sched_config with these names, as one policy.
//
// N1. An attribute wins over the lines of sched_config.
// N2. A named policy sets the order of jobs, strict_ordering, backfill and backfill.order. Only backfill.order may be changed beside it.

import { BACKFILL_ATTRS, BACKFILL_ORDERS, type BackfillOrder, SCHED_POLICIES, type SchedPolicyName } from "#model/sched-policies.ts";
import type { AttrRecord } from "#protocol/sched-link.ts";
import type { Policy } from "../shapes/policy.ts";

/** The attributes of a scheduler on which its policy depends. */
const POLICY_ATTRS = ["policy", ...BACKFILL_ATTRS] as const;

/** What a named policy means. job_order: null: jobs keep the order of their arrival. */
type Meaning = { readonly job_order: Policy["job_order"]; readonly backfill_order: BackfillOrder };
const MEANINGS: Readonly<Record<SchedPolicyName, Meaning>> = {
  easy: { job_order: "arrival", backfill_order: "queue" },
  sjbf: { job_order: "arrival", backfill_order: "shortest" },
  log: { job_order: "log", backfill_order: "shortest" },
};

/** The policies that were made from a policy of sched_config, by the values of the attributes. A cycle compares policies by identity. */
const MADE = new WeakMap<Policy, Map<string, Policy>>();

/** Returns the policy of sched_config as the attributes of the scheduler change it. Equal attributes give the same object. */
export function policyUnder(policy: Policy, attrs: AttrRecord): Policy {
  const texts = POLICY_ATTRS.map((name) => attrs[name]);
  if (policy.named === null && texts.every((text) => text === undefined)) return policy;
  let made = MADE.get(policy);
  if (made === undefined) MADE.set(policy, (made = new Map()));
  const key = JSON.stringify(texts);
  let found = made.get(key);
  if (found === undefined) made.set(key, (found = makePolicy(policy, attrs)));
  return found;
}

function makePolicy(policy: Policy, attrs: AttrRecord): Policy {
  const named = SCHED_POLICIES.find((name) => name === attrs["policy"]) ?? policy.named;
  const meaning = named === null ? null : MEANINGS[named];
  const formula = attrs["backfill.formula"];
  const order =
    BACKFILL_ORDERS.find((name) => name === attrs["backfill.order"]) ?? policy.backfill_order ?? meaning?.backfill_order ?? null;
  return Object.freeze({
    ...policy,
    ...(meaning === null ? {} : { job_order: meaning.job_order, strict_ordering: true, backfill: true }),
    named,
    backfill_order: order,
    backfill_formula: typeof formula === "string" ? formula : policy.backfill_formula,
  });
}

/** Returns one text for each setting that has no effect because of another one. asked: the policy of sched_config; policy: the one that applies. */
export function overruled(asked: Policy, policy: Policy): string[] {
  const texts: string[] = [];
  const tell = (setting: string, cause: string): void => void texts.push(`${setting} has no effect: ${cause}`);
  const { named, backfill_order: order } = policy;
  if (asked.named !== null && asked.named !== named)
    tell(`policy ${asked.named} of sched_config`, `the scheduler's attribute policy is ${named}`);
  if (asked.backfill_order !== null && asked.backfill_order !== order)
    tell(`backfill.order ${asked.backfill_order} of sched_config`, `the scheduler's attribute backfill.order is ${order}`);
  if (asked.backfill_formula !== "" && asked.backfill_formula !== policy.backfill_formula)
    tell("backfill.formula of sched_config", "the scheduler has an attribute backfill.formula");
  if (named !== null) {
    if (asked.job_sort_key.length > 0) tell("job_sort_key", `the policy is ${named}`);
    if (!asked.backfill) tell("backfill: False", `the policy is ${named}`);
  }
  if (order !== null && order !== "queue" && !(policy.strict_ordering && policy.backfill))
    tell(`backfill.order ${order}`, "there are no top jobs without strict_ordering and backfill");
  if (order === "formula" && policy.backfill_formula === "") tell("backfill.order formula", "there is no backfill.formula");
  if (order !== "formula" && policy.backfill_formula !== "") tell("backfill.formula", "backfill.order is not formula");
  return texts;
}
