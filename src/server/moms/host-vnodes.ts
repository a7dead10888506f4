// The vnodes of a host as its mom reports them: the server creates, changes and revives them, and marks them busy or down.
//
// I1. Values that an administrator has set on a vnode take precedence over reported values (docs/reference/execution.md 1).
// I2. A partition that a mom reports must follow the rules of qmgr (partition-rules.ts). Otherwise the partition is ignored,
//     and the log says why.
// I3. A mom creates no vnode with the name of another host whose mom is connected: only an administrator does.

import { defaultAttributes } from "#model/attribute.ts";
import { listOf, resourcesOf } from "#model/attribute-reader.ts";
import { Reject } from "#model/pbse.ts";
import { NODE_ATTRIBUTES } from "#model/tables/node-attributes.ts";
import { inOrder } from "#model/values/node-state.ts";
import type { MomVnode } from "#protocol/mom-link.ts";
import { mustGet } from "#support/assert.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { checkNodePartition } from "../attributes/partition-rules.ts";
import type { Kernel } from "../engine/kernel.ts";
import type { MomRuntime } from "../engine/mom-runtime.ts";
import type { Transaction } from "../engine/transaction.ts";
import { hostOf } from "../state/placement.ts";
import type { Attrs, ResourceRecord, Vnode } from "../state/state.ts";
import { checkVnode } from "./reported-vnode.ts";

/** The vnodes of a host. The name of the host may be in upper or lower case. */
export function vnodesOf(kernel: Kernel, host: string): Vnode[] {
  const names = kernel.state.hosts.get(host) ?? [...kernel.state.hosts].find(([name]) => name.toLowerCase() === host.toLowerCase())?.[1];
  return [...(names ?? [])].map((name) => mustGet(kernel.state.vnodes, name));
}

/** Applies a connected mom's report about its vnodes, at its hello and whenever it reports again. */
export function report(kernel: Kernel, tx: Transaction, mom: MomRuntime): void {
  kernel.moms.reporting = true;
  reportVnodes(kernel, tx, mom);
  // A mom that cannot start jobs (heartbeat.ts H4) may still report its vnodes; they stay state-unknown.
  if (mom.ill !== null) hostUnknown(kernel, tx, mom.host, mom.ill);
  tellBusy(kernel, tx, mom);
  kernel.moms.reporting = false;
}

/**
 * Creates and updates the vnodes that a mom reports, and removes states such as down from them. A host is part of the
 * complex only if an administrator created one of its vnodes.
 */
function reportVnodes(kernel: Kernel, tx: Transaction, mom: MomRuntime): void {
  const known = vnodesOf(kernel, mom.host);
  if (known.length === 0) return;
  const was_down = known.some((vnode) => statesOf(vnode).some((word) => word === "down" || word === "state-unknown"));
  const vnodes = checkedVnodes(kernel, tx, mom);
  const several = vnodes.length > 1;
  for (const reported of vnodes) {
    const vnode = kernel.state.vnodes.get(reported.name);
    // Natural vnodes are created only by an administrator (I3); the further vnodes of a definition file are created here.
    const is_natural = reported.name.toLowerCase() === mom.host.toLowerCase() || kernel.moms.by_host.has(reported.name.toLowerCase());
    if (vnode === undefined && !is_natural) createVnode(tx, mom, reported, several);
    else if (vnode !== undefined && hostOf(vnode).toLowerCase() === mom.host.toLowerCase()) updateVnode(tx, mom, vnode, reported, several);
  }
  const names = new Set(vnodes.map((vnode) => vnode.name));
  for (const vnode of known) {
    if (names.has(vnode.name)) continue;
    const natural = vnodes[0];
    if (vnode.attrs["from_mom"] === true) hostIsUp(tx, vnode, ["stale"], ["state-unknown", "down"]);
    // The administrator has given the host's only vnode another name than the host's, so this vnode is the mom's natural vnode.
    else if (known.length === 1 && natural !== undefined) updateVnode(tx, mom, vnode, natural, several);
    else hostIsUp(tx, vnode, [], [...REVIVED]);
  }
  if (was_down) tx.log({ event: LOG_EVENT.SYSTEM, class: "Node", object: mom.host, text: "node up" });
}

/** The reported vnodes, with the values that the server accepts. The log names the values that it does not accept. */
function checkedVnodes(kernel: Kernel, tx: Transaction, mom: MomRuntime): MomVnode[] {
  return mom.vnodes.flatMap((reported) => {
    const { vnode, refused } = checkVnode(kernel.state, mom.host, reported);
    if (refused.length > 0) {
      const text = `vnode ${reported.name}: the values that the mom reports for ${refused.join(", ")} are not used`;
      tx.log({ event: LOG_EVENT.ERROR, class: "Node", object: mom.host, text });
    }
    return vnode === null ? [] : withPartition(kernel, tx, vnode);
  });
}

/** Removes a reported partition that the vnode may not have at present (I2). */
function withPartition(kernel: Kernel, tx: Transaction, reported: MomVnode): MomVnode {
  const { partition, ...others } = reported.attrs;
  const vnode = kernel.state.vnodes.get(reported.name) ?? null;
  if (partition === undefined || vnode?.set_by_admin.includes("partition") === true) return reported;
  const before = vnode?.attrs ?? {};
  try {
    checkNodePartition(kernel.state, { before, after: { ...before, partition }, touched: new Set(["partition"]), terms: [] }, vnode);
    return reported;
  } catch (error) {
    if (!(error instanceof Reject)) throw error;
    const text = `the partition ${partition} that the mom reports is not used: ${error.text ?? error.message}`;
    tx.log({ event: LOG_EVENT.ERROR, class: "Node", object: reported.name, text });
    return { ...reported, attrs: others };
  }
}

function createVnode(tx: Transaction, mom: MomRuntime, reported: MomVnode, several: boolean): void {
  const resources = {
    host: mom.host,
    vnode: reported.name,
    ...resourcesOf(reported.attrs, "resources_available"),
  };
  const attrs: Attrs = {
    ...defaultAttributes(NODE_ATTRIBUTES),
    ...reported.attrs,
    Mom: [mom.host],
    Port: mom.hello.port,
    resources_available: resources,
    state: [],
    pbs_version: mom.hello.version,
    from_mom: true,
    last_state_change_time: tx.now_s,
    ...(several ? { in_multivnode_host: 1 } : {}),
  };
  tx.apply({ kind: "created", object: "node", name: reported.name, attrs });
}

function updateVnode(tx: Transaction, mom: MomRuntime, vnode: Vnode, reported: MomVnode, several: boolean): void {
  const by_admin = new Set(vnode.set_by_admin);
  const set: Attrs = {};
  const put = (name: string, value: unknown): void => {
    if (!by_admin.has(name) && JSON.stringify(vnode.attrs[name]) !== JSON.stringify(value)) set[name] = value;
  };
  for (const name in reported.attrs) if (name !== "resources_available") put(name, reported.attrs[name]);
  put("pbs_version", mom.hello.version);
  if (several) put("in_multivnode_host", 1);
  const now = resourcesOf(vnode.attrs, "resources_available");
  const resources: ResourceRecord = { ...now };
  const given = { host: mom.host, vnode: vnode.name, ...resourcesOf(reported.attrs, "resources_available") };
  // The vnode has a name from the administrator, which the mom does not know.
  if (reported.name !== vnode.name) given.vnode = vnode.name;
  for (const [name, value] of Object.entries(given)) if (!by_admin.has(`resources_available.${name}`)) resources[name] = value;
  put("resources_available", resources);
  const unset = [
    ...(!several && vnode.attrs["in_multivnode_host"] !== undefined && !by_admin.has("in_multivnode_host") ? ["in_multivnode_host"] : []),
    ...(isDownComment(vnode) ? ["comment"] : []),
  ];
  const states = statesOf(vnode).filter((word) => !REVIVED.has(word));
  if (states.length !== statesOf(vnode).length) set["state"] = states;
  if (Object.keys(set).length + unset.length > 0) tx.apply({ kind: "changed", object: "node", name: vnode.name, set, unset });
}

/** State words that the hello of a mom removes. It removes the word down even if an administrator has set it, but never the word offline (docs/reference/attributes.md 5). */
const REVIVED: ReadonlySet<string> = new Set(["state-unknown", "down", "stale", "unresolvable"]);

/** Sets the states of a vnode that the mom does not report: the mom is connected, so the vnode is no longer down or unknown. */
function hostIsUp(tx: Transaction, vnode: Vnode, add: readonly string[], remove: readonly string[]): void {
  setStates(tx, vnode, add, remove);
  if (isDownComment(vnode)) tx.apply({ kind: "changed", object: "node", name: vnode.name, set: {}, unset: ["comment"] });
}

/** Called when the mom of a host is gone: the vnodes of the host become down. */
export function hostDown(kernel: Kernel, tx: Transaction, host: string, why: string): void {
  tellHost(kernel, tx, host, "down", `node down: ${why}`);
}

/** Called when the mom of a host does not answer or cannot start jobs: the vnodes become state-unknown, so that no new jobs are sent there. */
export function hostUnknown(kernel: Kernel, tx: Transaction, host: string, why: string): void {
  tellHost(kernel, tx, host, "state-unknown", `node unknown: ${why}`);
}

function tellHost(kernel: Kernel, tx: Transaction, host: string, word: string, text: string): void {
  for (const vnode of vnodesOf(kernel, host)) {
    setStates(tx, vnode, [word], [], vnode.attrs["comment"] === undefined || isDownComment(vnode) ? { comment: text } : {});
    tx.log({ event: LOG_EVENT.SYSTEM, class: "Node", object: vnode.name, text });
  }
}

/** Called at the start of the server, when no mom is connected yet: all vnodes become state-unknown and down. */
export function allUnknown(kernel: Kernel, tx: Transaction): void {
  for (const vnode of kernel.state.vnodes.values()) setStates(tx, vnode, ["state-unknown", "down"], ["stale"]);
}

/** The vnodes of a host that are unknown or down until its mom says hello. */
export const vnodesAway = (kernel: Kernel, host: string): readonly Vnode[] =>
  vnodesOf(kernel, host).filter((vnode) => statesOf(vnode).some((word) => word === "state-unknown" || word === "down"));

/**
 * Stores the resources of a host that a mom computes for the site. They are kept apart from resources_available, for
 * schedulers that ask for them. Unknown resources are left out.
 */
export function siteResources(kernel: Kernel, tx: Transaction, mom: MomRuntime, resources: { readonly [name: string]: string }): void {
  const known = Object.fromEntries(Object.entries(resources).filter(([name]) => kernel.state.resources.get(name) !== undefined));
  const { vnode } = checkVnode(kernel.state, mom.host, { name: mom.host, attrs: { resources_available: known } });
  const site_resources = (vnode?.attrs["resources_available"] as ResourceRecord | undefined) ?? {};
  const none = Object.keys(site_resources).length === 0;
  for (const { name, attrs } of vnodesOf(kernel, mom.host)) {
    if (JSON.stringify(attrs["site_resources"] ?? {}) === JSON.stringify(site_resources)) continue;
    tx.apply({ kind: "changed", object: "node", name, set: none ? {} : { site_resources }, unset: none ? ["site_resources"] : [] });
  }
}

/** Sets or removes the state busy of all vnodes of a host, after its mom has reported whether someone uses the host. */
export function tellBusy(kernel: Kernel, tx: Transaction, { host, busy }: MomRuntime): void {
  for (const vnode of vnodesOf(kernel, host)) setStates(tx, vnode, busy ? ["busy"] : [], busy ? [] : ["busy"]);
}

const isDownComment = (vnode: Vnode): boolean =>
  typeof vnode.attrs["comment"] === "string" &&
  /^node (?:down|unknown): /.test(vnode.attrs["comment"]) &&
  !vnode.set_by_admin.includes("comment");

function setStates(tx: Transaction, vnode: Vnode, add: readonly string[], remove: readonly string[], more: Attrs = {}): void {
  const old = statesOf(vnode);
  const states = inOrder([...old.filter((word) => !remove.includes(word)), ...add]);
  const set: Attrs = { ...more, ...(states.join() === old.join() ? {} : { state: states }) };
  if (Object.keys(set).length > 0) tx.apply({ kind: "changed", object: "node", name: vnode.name, set, unset: [] });
}

const statesOf = (vnode: Vnode): readonly string[] => listOf(vnode.attrs, "state");

/** Called when an administrator has created a node: if its mom is connected, the node is up at once. */
export function nodeCreated(kernel: Kernel, tx: Transaction, name: string): void {
  const vnode = kernel.state.vnodes.get(name);
  const mom = vnode === undefined ? undefined : kernel.moms.by_host.get(hostOf(vnode).toLowerCase());
  if (mom !== undefined && !kernel.moms.reporting) report(kernel, tx, mom);
}
