// qselect: finds the ids of jobs that meet criteria, in the order of queue rank (docs/reference/commands.md 3).
//
// I1. A job must meet all criteria. If the job has no value for the attribute of a criterion, it meets only `ne`.
// I2. Texts are compared only for equality. Numbers, durations, times and sizes have an order. Checkpoint has the order of
//     its letters n s c u.

import { type AttributeDef, type AttributeValue, attributeOf } from "#model/attribute.ts";
import { parseDestination } from "#model/destination.ts";
import { limitOf } from "#model/limits/server-limits.ts";
import { PBSE, Reject, reject, rejectNaming } from "#model/pbse.ts";
import { JOB_ATTRIBUTES } from "#model/tables/job-attributes.ts";
import { hostMatches } from "#model/values/acl.ts";
import { parseHolds } from "#model/values/hold.ts";
import { parseValue } from "#model/values/index.ts";
import { listedResource, parseListedValue } from "#model/values/resource-list.ts";
import { compareResourceValues } from "#model/values/resource-value.ts";
import { splitList } from "#model/values/string-array.ts";
import type { SelectJobsRequest } from "#protocol/messages.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { shownEligible } from "../../jobs/eligible-time.ts";
import type { Attrs, JobAttrs } from "../../state/state.ts";
import { checkHistory, liveJobs, mayQuery } from "../../status/job.ts";
import { listJobs } from "../../status/job-listing.ts";
import type { Shown } from "../../status/subjob.ts";
import { isOwnName, localQueue } from "../../submit/admission.ts";

type Criterion = SelectJobsRequest["criteria"][number];
type Test = (attrs: JobAttrs) => boolean;

export function selectJobs(tx: Transaction, request: SelectJobsRequest): Answer {
  const chars_max = limitOf(tx.state, "max_criteria_text");
  if (request.criteria.reduce((chars, { value }) => chars + value.length, 0) > chars_max)
    throw rejectNaming(PBSE.IVALREQ, `more than ${chars_max} characters of criteria (max_criteria_text)`);
  checkHistory(tx, request.history);
  const queue = queueOf(tx, request.destination);
  const tests = request.criteria.map((criterion) => testOf(tx, criterion));
  const { states } = request;
  if (states !== undefined) tests.push((attrs) => states.includes(attrs.job_state));
  const isMeant = ({ attrs }: Shown): boolean => mayQuery(tx, { attrs }) && tests.every((test) => test(attrs as JobAttrs));
  const found: string[] = [];
  // Many subjobs share one record of attributes, which is tested only once.
  let last: Attrs | null = null;
  let meant = false;
  const live = request.history === "only" ? [] : liveJobs(tx.state, queue);
  return listJobs(tx, live, {
    ...(queue === undefined ? {} : { queue }),
    expand: request.subjobs === true,
    history: request.history !== undefined,
    give(_tx, shown) {
      for (const each of shown) {
        if (!isKind(request, each)) continue;
        if (each.attrs !== last) meant = isMeant(each);
        last = each.attrs;
        if (meant) found.push(each.id);
      }
    },
    value: () => found,
  });
}

/** Whether a job is of the requested kind. -T: subjobs in place of their array. -J: only arrays; -J with -T: only subjobs. */
function isKind({ arraysOnly, subjobs }: SelectJobsRequest, { id, attrs }: Shown): boolean {
  if (attrs["array"] === true) return subjobs !== true;
  return arraysOnly !== true || id.includes("[");
}

/** The queue that a destination names; undefined: all queues. Refuses an unknown queue with 15018, another server with 15008. */
function queueOf(tx: Transaction, text: string | undefined): string | undefined {
  if (text === undefined || text === "") return undefined;
  const destination = parseDestination(text);
  if (destination === null) throw reject(PBSE.UNKQUE);
  if (destination.queue !== "") return localQueue(tx, text).name;
  // `@server` means all queues of that server.
  if (!isOwnName(tx, destination.server)) throw reject(PBSE.BADHOST);
  return undefined;
}

/** Makes a test of jobs from a criterion. Refuses an unknown attribute with 15002, an unknown resource with 15035, a bad value with 15014 without a text. */
function testOf(tx: Transaction, criterion: Criterion): Test {
  const def = attributeOf(JOB_ATTRIBUTES, criterion.name);
  switch (def.name) {
    case "User_List":
      return ownerTest(criterion);
    case "Hold_Types":
      return equality(criterion.op, parsed(parseHolds(criterion.value)), (attrs) => attrs.Hold_Types);
    case "Checkpoint":
      return order(criterion.op, checkpointRank(criterion.value), (attrs) => checkpointRank(String(attrs["Checkpoint"] ?? "u")));
    default:
      return def.type === "resource_list" ? resourceTest(tx, def, criterion) : valueTest(tx, def, criterion);
  }
}

/** Makes the test for -u: the owner is one of those in the list, each as user or user@host. */
function ownerTest({ op, value }: Criterion): Test {
  const entries = new Map<string, (string | undefined)[]>();
  for (const entry of splitList(value)) {
    const [name = "", pattern] = entry.split("@");
    const patterns = entries.get(name) ?? [];
    entries.set(name, patterns);
    patterns.push(pattern);
  }
  // Most jobs have one of few owners, so results are kept by owner.
  const known = new Map<string, boolean>();
  const isListed = (owner: string): boolean => {
    let listed = known.get(owner);
    if (listed === undefined) {
      const [user = "", host = ""] = owner.split("@");
      listed = entries.get(user)?.some((pattern) => pattern === undefined || hostMatches(pattern, host)) === true;
      known.set(owner, listed);
    }
    return listed;
  };
  return op === "ne" ? (attrs) => !isListed(attrs.Job_Owner) : (attrs) => isListed(attrs.Job_Owner);
}

function resourceTest(tx: Transaction, def: AttributeDef, { resource, op, value }: Criterion): Test {
  const resc = listedResource(def, resource, tx.state.resources);
  const wanted = bare(() => parseListedValue(def, resc, value));
  return (attrs) => {
    const record = attrs[def.name] as { readonly [name: string]: string | number | boolean } | undefined;
    const found = record?.[resc.name];
    if (found === undefined) return op === "ne";
    const difference = compareResourceValues(resc, found, wanted);
    return difference === null ? holdsEqual(op, found === wanted) : holds(op, difference);
  };
}

function valueTest(tx: Transaction, def: AttributeDef, { resource, op, value }: Criterion): Test {
  const wanted = bare(() => parseValue(def, value, tx.state.resources, resource));
  if (def.name === "eligible_time" || def.name === "accrue_type") {
    const shown = (attrs: Attrs): Attrs => shownEligible(tx.state, attrs, tx.now_s) ?? attrs;
    return order(op, Number(wanted), (attrs) => shown(attrs)[def.name] as number | undefined);
  }
  if (typeof wanted === "number") return order(op, wanted, (attrs) => attrs[def.name] as number | undefined);
  return equality(op, wanted, (attrs) => attrs[def.name] as AttributeValue | undefined);
}

/** Parses a value. If it is refused, the refusal does not name the attribute (docs/reference/commands.md 3). */
function bare<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof Reject && error.code === PBSE.BADATVAL) throw reject(PBSE.BADATVAL);
    throw error;
  }
}

function parsed<T>(value: T | null): T {
  if (value === null) throw reject(PBSE.BADATVAL);
  return value;
}

function order(op: Criterion["op"], wanted: number, pick: (attrs: JobAttrs) => number | undefined): Test {
  return (attrs) => {
    const value = pick(attrs);
    return value === undefined ? op === "ne" : holds(op, value - wanted);
  };
}

function equality(op: Criterion["op"], wanted: AttributeValue, pick: (attrs: JobAttrs) => AttributeValue | undefined): Test {
  const text = JSON.stringify(wanted);
  return (attrs) => {
    const value = pick(attrs);
    return value === undefined ? op === "ne" : holdsEqual(op, JSON.stringify(value) === text);
  };
}

function holds(op: Criterion["op"], difference: number): boolean {
  switch (op) {
    case "eq":
      return difference === 0;
    case "ne":
      return difference !== 0;
    case "ge":
      return difference >= 0;
    case "gt":
      return difference > 0;
    case "le":
      return difference <= 0;
    case "lt":
      return difference < 0;
    default: {
      const unreachable: never = op;
      return unreachable;
    }
  }
}

/** Whether a comparison of values without an order is true. Equal values also meet `ge` and `le`. */
function holdsEqual(op: Criterion["op"], equal: boolean): boolean {
  return op === "ne" ? !equal : (op === "eq" || op === "ge" || op === "le") && equal;
}

/** The position of a Checkpoint value in the order: n never, s at shutdown, c and w at intervals (a shorter interval comes first), u unspecified. */
function checkpointRank(text: string): number {
  const letter = "nscu".indexOf(text.startsWith("w") ? "c" : (text[0] ?? ""));
  if (letter < 0) throw reject(PBSE.BADATVAL);
  const minutes = Number(/=([0-9]{1,9})$/.exec(text)?.[1] ?? 0);
  return letter * 1e10 + minutes;
}
