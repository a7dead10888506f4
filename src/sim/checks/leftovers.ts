// K12. At rest the server keeps no runtime record of something that is over. No request waits for the start or rerun of a job,
//      for a scheduler, a mom, a hook or the history. Every other record belongs to an object that exists.

import type { Kernel } from "#server/engine/kernel.ts";

type Row = readonly [what: string, keys: Iterable<string | number>, mayBe: (key: string) => boolean];

/** Returns the first record that should be gone, as a text; null: there is none. */
export function leftoverOf(kernel: Kernel): string | null {
  const { state, requests, jobs, scheds, moms, resvs, hooks } = kernel;
  const isJob = (id: string): boolean => state.jobs.has(id);
  const isJobOrSubjob = (id: string): boolean => isJob(id) || isJob(id.replace(/\[.*\]/, "[]"));
  const isResv = (id: string): boolean => state.resvs.has(id);
  const never = (): boolean => false;
  const rows: readonly Row[] = [
    ["the waiting request", requests.waiting.keys(), never],
    ["the request in parts", requests.joint.open.keys(), never],
    ["the part of a request", requests.joint.parts.keys(), never],
    ["the wait for the end of", jobs.waiters.keys(), isJobOrSubjob],
    ["the wait for the rerun of", jobs.reruns.keys(), never],
    ["the wait for the start of", jobs.starting.keys(), never],
    ["the preemption of", jobs.preemptions.keys(), never],
    ["the qrun of", scheds.qruns.keys(), never],
    ["the question to a scheduler", scheds.asked.keys(), never],
    ["the verdicts for", scheds.settled.keys(), never],
    ["the scheduler", scheds.by_name.keys(), (name) => state.scheds.has(name)],
    ["the question to a mom", moms.questions.keys(), never],
    ["the sisters of", moms.crews.keys(), isJob],
    ["the running hook", hooks.runs.keys(), never],
    ["the postqueuejob hooks of", hooks.posting.keys(), never],
    ["the seen state of", hooks.vnode_states.keys(), (name) => state.vnodes.has(name)],
    ["the wait for", resvs.waiters.keys(), isResv],
    ["the refusals of", resvs.refusals.keys(), isResv],
    ["the vain confirmations of", resvs.vain_confirms.keys(), isResv],
    ...[...scheds.by_name.values()].flatMap(({ name, link, qruns, asking, question, known }): Row[] => [
      [`the qrun that ${name} decides, of`, qruns, never],
      [`the question that ${name} answers`, question === null ? [] : [question], never],
      [`the runjob hooks for ${name} of`, asking, never],
      // A scheduler that is not connected gets a snapshot with its next connection.
      [`what ${name} knows of`, known.jobs, (id) => link === null || isJob(id)],
      [`what ${name} knows of`, known.nodes, (vnode) => link === null || state.vnodes.has(vnode)],
      [`what ${name} knows of`, known.queues, (queue) => link === null || state.queues.has(queue)],
    ]),
  ];
  for (const [what, keys, mayBe] of rows) for (const key of keys) if (!mayBe(String(key))) return `${what} ${key}`;
  return null;
}
