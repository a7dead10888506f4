// A running job releases vnodes on the hosts of its sister moms (docs/reference/execution.md 3, pbs_release_nodes). This file
// computes the attributes that the job has afterwards, and writes the accounting records of the phases of its run. Pure
// except for the events of the transaction.
//
// N1. When a whole host is given up, its vnodes stay with the job until the sister there has ended its part of the job;
//     meanwhile the job's `releasing` names these vnodes.
// N2. The attributes that the job had at its start are kept under names that end in _orig: record E reports them, and the
//     next run of a requeued job requests them again.

import { execHostText, parseExecHost } from "#model/request/exec-host.ts";
import { type ExecVnode, execVnodeText, parseExecVnode } from "#model/request/exec-vnode.ts";
import { eachChunk, parseSelect, type Select, selectSums, selectText } from "#model/request/select.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Transaction } from "../engine/transaction.ts";
import { hostOf } from "../state/placement.ts";
import type { Attrs, Job, ServerState } from "../state/state.ts";
import { accountPhase } from "./accounting-record.ts";
import { logJob } from "./life.ts";
import { originals } from "./start-attrs.ts";

/** The vnodes that the job is giving up (N1). */
export const releasingOf = (job: Job): readonly string[] => job.own.releasing ?? [];

const hostOfVnode = (state: Pick<ServerState, "vnodes">, name: string): string => {
  const vnode = state.vnodes.get(name);
  return vnode === undefined ? name : hostOf(vnode);
};

/** Vnodes of the job by host, in order of appearance. */
export function vnodesByHost(state: Pick<ServerState, "vnodes">, job: Job): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { vnode } of parseExecVnode(job.attrs.exec_vnode ?? "").flat()) {
    const host = hostOfVnode(state, vnode);
    const names = found.get(host) ?? [];
    if (!names.includes(vnode)) names.push(vnode);
    found.set(host, names);
  }
  return found;
}

/** All vnodes of the job that are not on its first host. */
export const furtherVnodes = (tx: Transaction, job: Job): readonly string[] => [...vnodesByHost(tx.state, job).values()].slice(1).flat();

/** Begins the release of these vnodes by a running job. None of them is on the job's first host. */
export function releaseVnodes(tx: Transaction, job: Job, wanted: readonly string[]): void {
  const names = wanted.filter((name) => !releasingOf(job).includes(name));
  if (names.length === 0) return;
  const all = new Set([...releasingOf(job), ...names]);
  const whole = [...vnodesByHost(tx.state, job)].filter(([, vnodes]) => vnodes.every((name) => all.has(name)));
  const waiting = new Set(whole.flatMap(([, vnodes]) => vnodes));
  // If the job keeps other vnodes of a host, the mom there has nothing to end, so these vnodes are given up at once.
  const at_once = new Set(names.filter((name) => !waiting.has(name)));
  if (at_once.size > 0) giveUp(tx, job, at_once);
  if (waiting.size === 0) return;
  tx.apply({ kind: "job-changed", id: job.id, set: {}, unset: [], own: { releasing: [...waiting] } });
  tx.act({ kind: "release-sisters", job: job.id, hosts: whole.map(([host]) => host) });
}

/** Removes vnodes from the job. at: `run`: the run gets a further phase; `start`: the run has not begun. */
export function giveUp(tx: Transaction, job: Job, names: ReadonlySet<string>, at: "run" | "start" = "run"): void {
  const { attrs } = job;
  const left = releasingOf(job).filter((name) => !names.has(name));
  if (at === "run") accountPhase(tx, "u", job, tx.now_s);
  const set = { ...remaining(tx, job, names), ...originals(attrs) };
  tx.apply({ kind: "job-changed", id: job.id, set, unset: [], own: { releasing: left.length > 0 ? left : null } });
  accountPhase(tx, at === "run" ? "c" : "s", job, tx.now_s);
  if (at === "start") return;
  logJob(tx, LOG_EVENT.JOB, job.id, `released ${[...names].join(", ")}`);
  tx.act({
    kind: "modify-job-on-mom",
    job: job.id,
    attrs: { exec_host: job.attrs.exec_host, exec_vnode: job.attrs.exec_vnode, schedselect: job.attrs["schedselect"] },
  });
}

/** exec_vnode, exec_host, schedselect and Resource_List of the job without the named vnodes. */
function remaining(tx: Transaction, job: Job, names: ReadonlySet<string>): Attrs {
  const { state } = tx;
  const { attrs } = job;
  const exec = parseExecVnode(attrs.exec_vnode ?? "");
  const kept = exec.map((chunk) => chunk.filter(({ vnode }) => !names.has(vnode)));
  const chunks = eachChunk(parseSelect(String(attrs["schedselect"] ?? attrs.Resource_List["select"] ?? "1")));
  const select: Select = {
    chunks: kept.flatMap((chunk, at) => {
      if (chunk.length === 0) return [];
      const asked = chunks[at]?.pairs ?? [];
      if (chunk.length === exec[at]?.length) return [{ count: 1, pairs: asked }];
      // A chunk on several vnodes keeps what it has on the vnodes that remain.
      const had = new Set(exec[at]?.flatMap(({ pairs }) => pairs.map(({ name }) => name)));
      const has = parseSelect(`1:${sumPairs(chunk)}`).chunks[0]?.pairs ?? [];
      return [{ count: 1, pairs: [...asked.filter(({ name }) => !had.has(name)), ...has] }];
    }),
  };
  const sums = selectSums(select, state.resources);
  const counted = Object.fromEntries(Object.entries(sums).filter(([name]) => attrs.Resource_List[name] !== undefined));
  return {
    exec_vnode: execVnodeText(kept.filter((chunk) => chunk.length > 0)),
    exec_host: remainingHosts(state, exec, attrs.exec_host ?? "", names),
    schedselect: selectText(select),
    Resource_List: { ...attrs.Resource_List, ...counted, nodect: select.chunks.length, select: selectText(select) },
  };
}

function sumPairs(chunk: ExecVnode[number]): string {
  const sums = new Map<string, string>();
  for (const { name, text, raw } of chunk.flatMap(({ pairs }) => pairs)) {
    const before = sums.get(name);
    const number = /^(\d+)(kb)?$/.exec(text);
    const added = /^(\d+)(kb)?$/.exec(before ?? "");
    if (before === undefined || number === null || added === null) sums.set(name, before ?? raw.slice(name.length + 1));
    else sums.set(name, `${Number(number[1]) + Number(added[1])}${number[2] ?? ""}`);
  }
  return [...sums].map(([name, text]) => `${name}=${text}`).join(":");
}

/** exec_host without the named vnodes. The slot numbers of the remaining entries do not change (exec-vnode.ts execHosts). */
function remainingHosts(state: ServerState, exec: ExecVnode, exec_host: string, names: ReadonlySet<string>): string {
  const entries = parseExecHost(exec_host);
  const groups = exec.flatMap((chunk) => {
    const hosts: { host: string; ncpus: number; left: boolean }[] = [];
    for (const { vnode, pairs } of chunk) {
      const host = hostOfVnode(state, vnode);
      if (hosts.at(-1)?.host !== host) hosts.push({ host, ncpus: 0, left: false });
      const last = hosts.at(-1) as (typeof hosts)[number];
      if (names.has(vnode)) continue;
      last.left = true;
      last.ncpus += Number(pairs.find(({ name }) => name === "ncpus")?.text ?? 0);
    }
    return hosts;
  });
  return execHostText(entries.flatMap((entry, at) => (groups[at]?.left === true ? [{ ...entry, ncpus: groups[at].ncpus }] : [])));
}
