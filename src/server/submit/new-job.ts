// What the server gives a new job: number, user and group, environment, paths of the output, and the terminal of an
// interactive job.
//
// I1. A job runs only as its owner; another user is refused with 15023, because there is no way yet to prove that two names
//     are one person.
// I2. Root owns jobs only if acl_roots allows it; in user mode the user of the complex owns all jobs.
// I3. The group of a job must be one of its owner's groups; any other is refused with 15045.
// I4. The address of the qsub that waits for an interactive job is sent to the mom with the job and is never shown.

import { PBSE, reject } from "#model/pbse.ts";
import { hostMatches } from "#model/values/acl.ts";
import { splitList } from "#model/values/string-array.ts";
import type { TerminalTicket } from "#protocol/terminal/link.ts";
import { mayRootOwnJobs } from "../attributes/permission.ts";
import type { Transaction } from "../engine/transaction.ts";
import { type JobOwn, NOTHING_OWN } from "../state/job-own.ts";
import type { JobAttrs, ServerState } from "../state/state.ts";
import type { SubmitMemo } from "./memo.ts";

// --- number

const NUMBER_MAX_DEFAULT = 9_999_999;

/** The number of the next job. Numbers ascend up to max_job_sequence_id, then begin at 1 again. Numbers that are in use are skipped. */
export function nextJobNumber(state: ServerState): number {
  const limit = state.server["max_job_sequence_id"];
  const max = typeof limit === "number" ? limit : NUMBER_MAX_DEFAULT;
  let seq = state.next_seq;
  do seq = seq >= max ? 1 : seq + 1;
  while (state.jobs.has(`${seq}.${state.name}`) || state.jobs.has(`${seq}[].${state.name}`) || isResv(state, seq));
  return seq;
}

/** Whether a reservation has this number, or a queue has the name of such a reservation's queue. Jobs and reservations share the numbers. */
function isResv(state: ServerState, seq: number): boolean {
  if (state.resvs.size === 0 && !state.queues.has(`R${seq}`)) return false;
  return LETTERS.some((letter) => state.queues.has(`${letter}${seq}`) || state.resvs.has(`${letter}${seq}.${state.name}`));
}
/** The first letters of reservation ids. */
const LETTERS = ["R", "S", "M"] as const;

// --- user and group

export type ExecutionUser = { readonly euser: string; readonly egroup: string };

/** The user and group of a job's processes: the first of User_List and group_list that is meant for this host, else the owner and the owner's first group. */
export function executionUser(
  tx: Transaction,
  lists: { readonly User_List?: readonly string[]; readonly group_list?: readonly string[] },
): ExecutionUser {
  const { who, config } = tx;
  const euser = chosen(lists.User_List, config.host) ?? who.user;
  if (euser !== who.user) throw reject(PBSE.BADUSER);
  if (config.own_user !== null) {
    if (euser !== config.own_user) throw reject(PBSE.BADUSER);
  } else {
    if ((who.uid === 0 || euser === "root") && !mayRootOwnJobs(tx.state, who.host)) throw reject(PBSE.BADUSER);
    if (!config.userExists(euser)) throw reject(PBSE.BADUSER);
  }
  const egroup = chosen(lists.group_list, config.host);
  if (egroup !== undefined && !who.groups.includes(egroup)) throw reject(PBSE.BADGRP);
  return { euser, egroup: egroup ?? who.groups[0] ?? euser };
}

/** Chooses from a list of `name[@host]`: the entry for this host, else the first entry without a host. */
function chosen(list: readonly string[] | undefined, host: string): string | undefined {
  let general: string | undefined;
  for (const entry of list ?? []) {
    const at = entry.indexOf("@");
    if (at < 0) general ??= entry;
    else if (hostMatches(entry.slice(at + 1), host)) return entry.slice(0, at);
  }
  return general;
}

// --- environment

/** The environment of a new job. workdir: the directory from which it was submitted; `/` if the client sent none. */
export type Environment = { readonly list: readonly string[]; readonly workdir: string };

/** Variable_List as it is stored: the variables from qsub, then PBS_O_QUEUE and PBS_O_HOST, which only the server knows (docs/reference/files.md 6). */
export function environment(memo: SubmitMemo, text: string, queue: string, host: string): Environment {
  return memo.value(`environment\0${queue}\0${host}\0${text}`, () => {
    const given = splitList(text, true).filter((variable) => !/^PBS_O_(QUEUE|HOST)=/.test(variable));
    return { list: [...given, `PBS_O_QUEUE=${queue}`, `PBS_O_HOST=${host}`], workdir: workdirOf(given) };
  });
}

const WORKDIR = "PBS_O_WORKDIR=";

/** The directory from which a job was submitted, according to its variables. */
export function workdirOf(variables: unknown): string {
  const list = Array.isArray(variables) ? (variables as readonly string[]) : [];
  return unescaped(list.find((variable) => variable.startsWith(WORKDIR))?.slice(WORKDIR.length) ?? "") || "/";
}

/** Removes the backslashes that protect characters. */
const unescaped = (value: string): string => value.replace(/\\(.)/gs, "$1");

// --- paths

const GIVEN = /^(?:([^/:\s]+):)?(.*)$/s;

export type PathContext = { readonly host: string; readonly workdir: string };

/** The default of Output_Path or Error_Path: <job name>.<suffix> in the directory of the submission (docs/reference/files.md 5). suffix: `o12` or `e12`. */
export function defaultPath({ host, workdir }: PathContext, name: string, suffix: string): string {
  return `${host}:${workdir === "/" ? "" : workdir}/${name}.${suffix}`;
}

/** Completes a path with host and directory to the stored form host:/absolute/path. A final slash stays, because a file name is added to it later. */
export function completePath(text: string, { host, workdir }: PathContext): string {
  const [, given_host, path = ""] = GIVEN.exec(text) ?? [];
  return `${given_host ?? host}:${path.startsWith("/") ? path : `${workdir === "/" ? "" : workdir}/${path}`}`;
}

// --- terminal

/**
 * The server's own data of a new job: the terminal ticket of an interactive job. Refuses an interactive job without a
 * waiting qsub. Also refuses an interactive array, because each subjob would need a terminal.
 */
export function enterTerminal(attrs: JobAttrs, terminal: TerminalTicket | undefined): JobOwn {
  const { interactive } = attrs as { interactive?: number };
  if (interactive === undefined) return NOTHING_OWN;
  if (interactive === 0) {
    delete (attrs as { interactive?: number }).interactive;
    return NOTHING_OWN;
  }
  if (terminal === undefined || attrs.array === true) throw reject(PBSE.BADATVAL, "interactive");
  // An interactive job cannot run again, because the user at its terminal would be gone by then.
  attrs.Rerunable = false;
  return { terminal };
}
