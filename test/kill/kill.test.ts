// Two thousand short jobs while server, scheduler, mom and starter are killed at random.

import { after, before, test } from "node:test";
import { beginFlow, checkFlow, endFlow } from "./job-flow.ts";

before(() => beginFlow());
after(() => endFlow());

test("every job is accounted for exactly once while daemons are killed at random", { timeout: 600_000 }, (t) =>
  checkFlow(t, { jobs: 2000, victims: ["server", "server", "server", "sched", "mom", "mom", "mom", "starter"] }),
);
