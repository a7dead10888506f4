// qmgr create|delete|set|unset sched (docs/reference/attributes.md 3, docs/reference/qmgr.md 12, docs/reference/differences.md).
//
// I1. `default` always exists and keeps its partition and directories (15214, 15223).
// I2. No two schedulers share a sched_priv or sched_log (15215, 15216).

import { listOf } from "#model/attribute-reader.ts";
import { checkObjectName } from "#model/object-names.ts";
import { PBSE, reject } from "#model/pbse.ts";
import { DEFAULT_SCHED, freshSched, SCHED_ATTRIBUTES, schedDirectories } from "#model/tables/sched-attributes.ts";
import { splitList } from "#model/values/string-array.ts";
import type { AttrOp, ManagerRequest } from "#protocol/messages.ts";
import { type Changed, changeAttrs, delta, withValue } from "../../attributes/change.ts";
import { checkFormula } from "../../attributes/formula-rules.ts";
import { daemonName, type LogTarget, logChanged, logCreated, logDeleted, loggedTerms } from "../../attributes/manager-log.ts";
import { checkSchedPartitions } from "../../attributes/partition-rules.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import type { Attrs, Sched } from "../../state/state.ts";

export function manageSched(tx: Transaction, request: ManagerRequest): Answer {
  switch (request.verb) {
    case "create":
      return createSched(tx, request);
    case "delete":
      return deleteScheds(tx, request.name);
    case "set":
    case "unset":
      return changeSched(tx, request, request.verb);
    default: {
      const unreachable: never = request.verb;
      return unreachable;
    }
  }
}

function createSched(tx: Transaction, request: ManagerRequest): Answer {
  const { state, config } = tx;
  const name = nameOr(request, DEFAULT_SCHED);
  if (state.scheds.has(name)) throw reject(PBSE.SCHEDEXIST);
  checkObjectName("sched", name);
  const changed = changedSched(tx, name, freshSched(name, config.home, config.host), request.attrs, true);
  logCreated(tx, target(tx), loggedTerms(changed));
  tx.apply({ kind: "created", object: "sched", name, attrs: changed.after });
  return {};
}

function changeSched(tx: Transaction, request: ManagerRequest, verb: "set" | "unset"): Answer {
  const sched = schedNamed(tx, nameOr(request, DEFAULT_SCHED));
  const changed = changedSched(tx, sched.name, sched.attrs, request.attrs, false);
  logChanged(tx, target(tx), verb, loggedTerms(changed));
  tx.apply({ kind: "changed", object: "sched", name: sched.name, ...delta(changed) });
  return {};
}

/** Deletes a scheduler; for "", all schedulers except the default one. */
function deleteScheds(tx: Transaction, name: string): Answer {
  if (name === DEFAULT_SCHED) throw reject(PBSE.SCHED_NO_DEL);
  const names = name === "" ? [...tx.state.scheds.keys()].filter((other) => other !== DEFAULT_SCHED) : [schedNamed(tx, name).name];
  for (const each of names) {
    logDeleted(tx, target(tx));
    tx.apply({ kind: "deleted", object: "sched", name: each });
  }
  return {};
}

function changedSched(tx: Transaction, name: string, before: Attrs, ops: readonly AttrOp[], creating: boolean): Changed {
  const { state, who } = tx;
  const asked = changeAttrs(
    before,
    ops.map((op) => withoutNone(op)),
    { table: SCHED_ATTRIBUTES, resources: state.resources, who, creating, fresh: freshSched(name, tx.config.home, tx.config.host) },
  );
  if (name === DEFAULT_SCHED) checkDefault(ops);
  const changed = withRunWait(withDirectories(tx, name, name === DEFAULT_SCHED ? keepingPartition(asked) : asked), ops);
  const { after, touched } = changed;
  if (name !== DEFAULT_SCHED && touched.has("partition")) checkSchedPartitions(state, name, listOf(after, "partition"));
  if (creating || touched.has("sched_priv") || touched.has("sched_log")) checkDirectories(tx, name, after);
  checkFormula(changed, state.resources, [state.server]);
  const user = after["sched_user"];
  if (touched.has("sched_user") && typeof user === "string" && !tx.config.userExists(user)) throw reject(PBSE.BADATVAL);
  return changed;
}

/** Removes `None` from the value of partition. `partition = None` thus means unset (docs/reference/differences.md). */
function withoutNone(op: AttrOp): AttrOp {
  if (SCHED_ATTRIBUTES.byName(op.name)?.name !== "partition" || op.op === "unset") return op;
  const names = splitList(op.value);
  if (!names.includes("None")) return op;
  const value = names.filter((name) => name !== "None").join(",");
  return { ...op, value };
}

/** Attributes of the default scheduler that cannot be set. With sched_host or sched_port it would be on another host, where the server cannot start it. */
const OF_DEFAULT: ReadonlySet<string> = new Set(["partition", "sched_priv", "sched_log", "sched_host", "sched_port"]);

function checkDefault(ops: readonly AttrOp[]): void {
  for (const op of ops) {
    const name = SCHED_ATTRIBUTES.byName(op.name)?.name ?? "";
    if (op.op !== "unset" && OF_DEFAULT.has(name)) throw reject(PBSE.SCHED_OP_NOT_PERMITTED);
  }
}

/** The change without the partition. To unset the partition of the default scheduler is accepted, but has no effect. */
function keepingPartition(changed: Changed): Changed {
  const touched = new Set([...changed.touched].filter((name) => name !== "partition"));
  return { ...changed, touched, after: { ...changed.after, partition: changed.before["partition"] } };
}

/** The change with the default names of directories in place of those that were unset. */
function withDirectories(tx: Transaction, name: string, changed: Changed): Changed {
  return { ...changed, after: { ...schedDirectories(name, tx.config.home), ...changed.after } };
}

/** Gives job_run_wait and throughput_mode, its old form, the same meaning. The attribute that was set last decides. */
function withRunWait(changed: Changed, ops: readonly AttrOp[]): Changed {
  const { after } = changed;
  const last = ops.map((op) => op.name.toLowerCase()).findLast((name) => name === "throughput_mode" || name === "job_run_wait");
  if (last === "throughput_mode") {
    // `-=` removes the value, as unset does; then the default applies.
    const mode = after["throughput_mode"] ?? true;
    return withValue(withValue(changed, "throughput_mode", mode), "job_run_wait", mode === false ? "execjob_hook" : "runjob_hook");
  }
  if (last !== "job_run_wait") return changed;
  return withValue(changed, "throughput_mode", after["job_run_wait"] === "none" ? undefined : after["job_run_wait"] === "runjob_hook");
}

function checkDirectories(tx: Transaction, name: string, after: Attrs): void {
  for (const other of tx.state.scheds.values()) {
    if (other.name === name) continue;
    if (sameDirectory(other.attrs["sched_priv"], after["sched_priv"])) throw reject(PBSE.SCHED_PRIV_EXIST);
    if (sameDirectory(other.attrs["sched_log"], after["sched_log"])) throw reject(PBSE.SCHED_LOG_EXIST);
  }
}

function sameDirectory(a: unknown, b: unknown): boolean {
  return typeof a === "string" && typeof b === "string" && plainPath(a) === plainPath(b);
}

const plainPath = (path: string): string => path.replace(/\/+/g, "/").replace(/(.)\/$/, "$1");

function schedNamed(tx: Transaction, name: string): Sched {
  const sched = tx.state.scheds.get(name);
  if (sched === undefined) throw reject(PBSE.UNKSCHED);
  return sched;
}

const nameOr = ({ name }: ManagerRequest, fallback: string): string => (name === "" ? fallback : name);
const target = (tx: Transaction): LogTarget => ({ class: "Sched", object: daemonName(tx) });
