import { test } from "node:test";
import { decisionTexts, logTexts, queue, run } from "./world.ts";
const sched = { preempt_prio: "express_queue, normal_jobs, server_softlimits, queue_softlimits" };
test("x", () => {
  for (const [server, jobs] of [
    [{ max_run_res_soft: { mem: { "u:bob": "1gb" } } }, "1 R (a:ncpus=4:mem=2gb) u=bob mem=2gb; 2 ncpus=2 u=alice"],
    [{ max_run_res_soft: { mem: { "u:PBS_GENERIC": "1gb" } } }, "1 R (a:ncpus=4:mem=2gb) u=bob mem=2gb; 2 ncpus=2 u=alice"],
    [{ max_run_res_soft: { mem: { "o:PBS_ALL": "1gb" } } }, "1 R (a:ncpus=4:mem=2gb) u=bob mem=2gb; 2 ncpus=2 u=alice"],
    [{ max_run_res_soft: { mem: { "o:PBS_ALL": "1gb" } } }, "1 R (a:ncpus=4:mem=2gb) u=bob mem=2gb; 2 ncpus=2 u=alice @x"],
    [{ max_run_res_soft: { ncpus: { "o:PBS_ALL": 1 } } }, "1 R (a:ncpus=4:mem=2gb) u=bob mem=2gb; 2 ncpus=2 u=alice"],
  ] as const) {
    const r = run({ nodes: "a ncpus=4 mem=8gb", jobs, server, sched, queues: [queue("workq"), queue("x", { Priority: 200 })] });
    console.log(JSON.stringify(server), decisionTexts(r));
  }
});
