// A random world of promises as text: its contents, and the results of each cycle.

import type { SchedJob } from "#protocol/sched-link.ts";
import type { CycleResult } from "#sched/cycle/result.ts";
import type { Seen } from "./promise-causes.ts";
import type { PromiseWorld } from "./promise-world.ts";

export function describeWorld({ vnodes, queues, book, universe }: PromiseWorld): string[] {
  const { by_queue, matcher, smp_cluster_dist, node_sort_key } = book.prime;
  return [
    `  server ${JSON.stringify(universe.server.attrs)} sched ${JSON.stringify(universe.sched.attrs)}`,
    `  ${JSON.stringify({ by_queue, matcher, smp_cluster_dist, node_sort_key, cons: book.module_options !== undefined })}`,
    ...queues.map((queue) => `  queue ${JSON.stringify(queue)}`),
    ...vnodes.map(
      ({ name, ncpus, mem, gpus, sharing, limits }) =>
        `  ${name} ncpus=${ncpus} mem=${mem} gpus=${gpus} ${sharing} ${JSON.stringify(limits)}`,
    ),
  ];
}

export function describeCycle(world: PromiseWorld, results: readonly CycleResult[], before: Seen): string[] {
  const lines = [`  --- ${world.now_s} ${world.happened.map((one) => JSON.stringify(one)).join(" ")}`];
  for (const job of world.jobs.values()) if (!before.jobs.has(job.id) && job.array_id === undefined) lines.push(`  new ${jobText(job)}`);
  for (const job of before.jobs.values()) if (!world.jobs.has(job.id)) lines.push(`  gone ${job.id}`);
  for (const decision of results.flatMap(({ decisions }) => decisions)) {
    if (decision.kind === "run") lines.push(`  run ${decision.job} ${decision.exec_vnode} until ${world.ends.get(decision.job)}`);
    else if (decision.kind === "estimate")
      lines.push(`  plan ${decision.job} ${decision.start_s} ${decision.exec_vnode} ${decision.topjob}`);
    else if (decision.kind !== "comment") lines.push(`  ${JSON.stringify(decision)}`);
  }
  for (const record of results.flatMap(({ log }) => log))
    if ("text" in record && record.text.startsWith("Can't find") && before.promises.has(record.object))
      lines.push(`  ${record.object}: ${record.text}`);
  return lines;
}

const jobText = ({ id, rank, queue, user, schedselect, place, resources, array }: SchedJob): string => {
  const { ncpus: _ncpus, mem: _mem, gpus: _gpus, ...times } = resources;
  return `${id} rank ${rank} @${queue} ${user} ${schedselect} ${place} ${JSON.stringify({ ...times, ...array })}`;
};
