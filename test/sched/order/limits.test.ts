// Run limits: server attributes | queue attributes | jobs => decisions; and the texts of both styles (sched-limits-entity, sched-limits-old, limits).

import assert from "node:assert/strict";
import { test } from "node:test";
import { decisionTexts, logTexts, queue, run } from "../world.ts";

type Attrs = Record<string, unknown>;
type Row = readonly [title: string, server: Attrs, queue: Attrs, jobs: string, expected: readonly string[], log?: string];

const J1 = "9 R (H:ncpus=1)";

// biome-ignore format: a table
const ROWS: readonly Row[] = [
  ["queue, generic user",     {}, { max_run: { "u:PBS_GENERIC": 1 } },        `${J1}; 1`, ["1: Not Running: User has reached queue workq running job limit."], "Queue workq per-user job limit reached"],
  ["queue, named user",       {}, { max_run: { "u:alice": 1 } },              `${J1}; 1`, ["1: Not Running: Queue workq job limit reached for user alice"]],
  ["named user wins over generic", {}, { max_run: { "u:alice": 2, "u:PBS_GENERIC": 1 } }, `${J1}; 1; 2`, ["1=(H:ncpus=1)", "2: Not Running: Queue workq job limit reached for user alice"]],
  ["queue, generic group",    {}, { max_run: { "g:PBS_GENERIC": 1 } },        `${J1}; 1`, ["1: Not Running: Group has reached queue workq running limit."], "Queue workq per-group job limit reached"],
  ["queue, overall",          {}, { max_run: { "o:PBS_ALL": 1 } },            `${J1}; 1`, ["1: Not Running: Queue workq job limit has been reached."], "Queue workq job limit reached"],
  ["queue, generic project",  {}, { max_run: { "p:PBS_GENERIC": 1 } },        `${J1}; 1`, ["1: Not Running: Project has reached queue workq's running limit."], "Queue workq per-project job limit reached"],
  ["server, generic project", { max_run: { "p:PBS_GENERIC": 1 } }, {},        `${J1}; 1`, ["1: Not Running: Project has reached server running limit."], "Server per-project limit reached"],
  ["server, named project",   { max_run: { "p:x": 1 } }, {},                  `${J1} p=x; 1 p=x; 2`, ["1: Not Running: Server job limit reached for project x", "2=(H:ncpus=1)"]],
  ["server, generic user",    { max_run: { "u:PBS_GENERIC": 1 } }, {},        `${J1}; 1; 2 u=bob`, ["1: Not Running: User has reached server running job limit.", "2=(H:ncpus=1)"], "Server per-user job limit reached"],
  ["server, named group",     { max_run: { "g:users": 1 } }, {},              `${J1}; 1; 2 g=staff`, ["1: Not Running: Server job limit reached for group users", "2=(H:ncpus=1)"]],
  ["server, resource of a named user", { max_run_res: { ncpus: { "u:alice": 1 } } }, {}, `${J1}; 1`, ["1: Not Running: would exceed user alice's limit on resource ncpus in complex"]],
  ["server, resource overall", { max_run_res: { ncpus: { "o:PBS_ALL": 1 } } }, {}, `${J1}; 1`, ["1: Not Running: would exceed overall limit on resource ncpus in complex"]],
  ["server, resource of any user", { max_run_res: { ncpus: { "u:PBS_GENERIC": 2 } } }, {}, `${J1}; 1 ncpus=2; 2 ncpus=1`, ["1: Not Running: Server per-user limit reached on resource ncpus", "2=(H:ncpus=1)"]],
  ["queue, resource of a named group", {}, { max_run_res: { mem: { "g:users": "3gb" } } }, "9 R (H:ncpus=1:mem=2gb); 1 ncpus=1:mem=2gb; 2 ncpus=1:mem=1gb", ["1: Not Running: would exceed group users's limit on resource mem in queue workq", "2=(H:ncpus=1:mem=1048576kb)"]],
  ["queue before server",     { max_run: { "u:PBS_GENERIC": 1 } }, { max_run: { "o:PBS_ALL": 1 } }, `${J1}; 1`, ["1: Not Running: Queue workq job limit has been reached."]],
  ["group, project, overall, user", {}, { max_run: { "u:alice": 1, "o:PBS_ALL": 1, "g:users": 1 } }, `${J1}; 1`, ["1: Not Running: Queue workq job limit reached for group users"]],
  ["jobs before amounts",     { max_run: { "u:alice": 1 } }, { max_run_res: { ncpus: { "g:users": 1 } } }, `${J1}; 1`, ["1: Not Running: Server job limit reached for user alice"]],
  ["limits after what never fits", { max_run: { "u:alice": 1 } }, {}, `${J1}; 1 ncpus=17`, ["1: Can Never Run: Insufficient amount of resource: ncpus (R: 17 A: 16 T: 16)"]],
  ["old: max_user_run of the server", { max_user_run: 1 }, {},                `${J1}; 1`, ["1: Not Running: User has reached server running job limit."]],
  ["old: max_user_run of the queue", {}, { max_user_run: 1 },                 `${J1}; 1`, ["1: Not Running: User has reached queue workq running job limit."]],
  ["old: max_running of the server", { max_running: 1 }, {},                  `${J1}; 1`, ["1: Not Running: Server job limit has been reached."]],
  ["old: max_running of the queue", {}, { max_running: 1 },                   `${J1}; 1`, ["1: Not Running: Queue workq job limit has been reached."]],
  ["old: max_group_run",      { max_group_run: 1 }, {},                       `${J1}; 1`, ["1: Not Running: Group has reached server running limit."]],
  ["old: max_user_res",       { max_user_res: { ncpus: 3 } }, {},             "9 R (H:ncpus=2); 1 ncpus=2", ["1: Not Running: Server per-user limit reached on resource ncpus"]],
  ["starts of this cycle count", { max_run: { "u:PBS_GENERIC": 1 } }, {},     "1; 2; 3 u=bob; 4 u=bob", ["1=(H:ncpus=1)", "2: Not Running: User has reached server running job limit.", "3=(H:ncpus=1)", "4: Not Running: User has reached server running job limit."]],
  ["a limit of none",         { max_run: { "u:alice": 0 } }, {},              "1; 2 u=bob", ["1: Not Running: Server job limit reached for user alice", "2=(H:ncpus=1)"]],
];

for (const [title, server, attrs, jobs, expected, log] of ROWS) {
  test(`limits: ${title}`, () => {
    const result = run({ nodes: "H ncpus=16 mem=64gb", jobs, server, queues: [queue("workq", attrs)] });
    assert.deepEqual(decisionTexts(result), expected);
    if (log !== undefined) assert.ok(logTexts(result).includes(`0040;Job;1;${log}`), logTexts(result).join("\n"));
  });
}
