// Prepares the state at the start of the server: for the first start, and for the options -t and -a (docs/reference/files.md
// 1.1, 10).

import { defaultAttributes } from "#model/attribute.ts";
import { PBSE, Reject } from "#model/pbse.ts";
import { DEFAULT_SCHED, freshSched, schedDirectories } from "#model/tables/sched-attributes.ts";
import { SERVER_ATTRIBUTES } from "#model/tables/server-attributes.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { serverIdentity } from "../engine/identity.ts";
import { ownTransaction, transaction } from "../engine/kernel.ts";
import { nothingKnown } from "../engine/request-runtime.ts";
import type { Transaction } from "../engine/transaction.ts";
import { endWaiting, finish } from "../jobs/end.ts";
import { handle } from "../requests/index.ts";
import { isWaiting } from "../state/job-phase.ts";
import type { Core } from "./core.ts";
import type { ServerOptions } from "./options.ts";

export type StartFacts = {
  readonly start: ServerOptions["start"];
  readonly scheduling?: boolean;
  /** whether the store was empty */
  readonly fresh: boolean;
  /** host name of the node to create; null: this host has no mom */
  readonly node: string | null;
  /** server attributes that the installation wants, as texts by name. They are set once, when the store is empty */
  readonly wanted?: { readonly [name: string]: string };
};

/** Changes the state as the kind of start (cold, create, ...) requires. The changes are applied as events, like the changes of a client's request. */
export function prepareStart(core: Core, facts: StartFacts): void {
  const { config } = core.kernel;
  const tx = ownTransaction(core.kernel);
  if (facts.start === "cold" || facts.start === "create") purgeJobs(tx);
  if (facts.fresh || facts.start === "create") freshConfiguration(tx, facts.start === "create");
  if (facts.fresh && facts.start !== "create") {
    habitat(hostKnown(core, facts.node), facts.node);
    for (const [name, value] of Object.entries(facts.wanted ?? {})) setWanted(tx, name, value);
  }
  if (config.pair !== undefined) takeDirectories(tx);
  const set: { [name: string]: unknown } = { pbs_version: config.pbs_version, server_host: config.pair?.host ?? config.host };
  if (facts.scheduling !== undefined) set["scheduling"] = facts.scheduling;
  const changed = Object.fromEntries(Object.entries(set).filter(([name, value]) => tx.state.server[name] !== value));
  if (Object.keys(changed).length > 0) tx.apply({ kind: "server-changed", set: changed, unset: [] });
}

/**
 * In a complex with two servers, the default directories of schedulers are the directories on the host whose server leads, even if PBS_HOME has another path there. Directories
 * with other names stay as they were given: both hosts must have them.
 */
function takeDirectories(tx: Transaction): void {
  for (const { name, attrs } of [...tx.state.scheds.values()]) {
    const own = schedDirectories(name, tx.config.home);
    const set = Object.fromEntries(
      Object.entries(own).filter(([key, path]) => attrs[key] !== path && String(attrs[key]).split("/").at(-1) === path.split("/").at(-1)),
    );
    if (Object.keys(set).length > 0) tx.apply({ kind: "changed", object: "sched", name, set, unset: [] });
  }
}

/** A transaction in which the server's own host name can always be resolved, even if no name service knows it. */
function hostKnown(core: Core, node: string | null): Transaction {
  const known = nothingKnown();
  if (node !== null) known.hosts.set(node, node);
  return transaction(core.kernel, serverIdentity(core.kernel.config.host), 0, known);
}

/** Sets an attribute that the installation wants. If the server refuses the value, this is logged, and the server starts nevertheless. */
function setWanted(tx: Transaction, name: string, value: string): void {
  try {
    handle(tx, { kind: "manager", verb: "set", object: "server", name: "", attrs: [{ name, op: "=", value }] });
  } catch (error) {
    if (!(error instanceof Reject)) throw error;
    tx.log({ event: LOG_EVENT.ERROR, class: "Svr", object: `Server@${tx.config.host}`, text: `first_start: ${name}: ${error.text}` });
  }
}

/** Deletes all jobs. They do not enter the history. */
function purgeJobs(tx: Transaction): void {
  for (const job of [...tx.state.jobs.values()]) {
    if (isWaiting(job)) endWaiting(tx, job, false);
    else finish(tx, job, "deleted", "", false);
  }
}

/**
 * Gives the server and the default scheduler their initial attributes, and deletes other schedulers. idle: the default
 * scheduler gets scheduling False (-t create).
 */
function freshConfiguration(tx: Transaction, idle: boolean): void {
  const { config, state } = tx;
  for (const sched of [...state.scheds.values()]) {
    if (sched.name !== DEFAULT_SCHED) tx.apply({ kind: "deleted", object: "sched", name: sched.name });
  }
  const attrs = { ...freshSched(DEFAULT_SCHED, config.home, config.host), scheduling: !idle };
  if (!state.scheds.has(DEFAULT_SCHED)) tx.apply({ kind: "created", object: "sched", name: DEFAULT_SCHED, attrs });
  else
    tx.apply({
      kind: "changed",
      object: "sched",
      name: DEFAULT_SCHED,
      set: attrs,
      unset: gone(state.scheds.get(DEFAULT_SCHED)?.attrs ?? {}, attrs),
    });
  const server = { ...defaultAttributes(SERVER_ATTRIBUTES), scheduling: !idle };
  tx.apply({ kind: "server-changed", set: server, unset: gone(state.server, server) });
}

const gone = (old: object, next: object): string[] => Object.keys(old).filter((name) => !(name in next));

/** Makes the queue workq and the node of this host, as the installation of PBS does. */
function habitat(tx: Transaction, node: string | null): void {
  const attr = (name: string, value: string) => ({ name, op: "=" as const, value });
  if (!tx.state.queues.has("workq")) {
    handle(tx, {
      kind: "manager",
      verb: "create",
      object: "queue",
      name: "workq",
      attrs: [attr("queue_type", "Execution"), attr("enabled", "True"), attr("started", "True")],
    });
    handle(tx, { kind: "manager", verb: "set", object: "server", name: "", attrs: [attr("default_queue", "workq")] });
  }
  if (node === null || tx.state.vnodes.has(node)) return;
  try {
    handle(tx, { kind: "manager", verb: "create", object: "node", name: node, attrs: [] });
  } catch (error) {
    // The host name is not a legal node name. The administrator must create the node under another name.
    if (!(error instanceof Reject) || error.code === PBSE.INTERNAL) throw error;
  }
}
