// The second half of a thousand simulated complexes.

import { test } from "node:test";
import { GROUP, runGroup } from "./seed-groups.ts";

for (let first = 501; first <= 1000; first += GROUP)
  test(`seeds ${first} to ${first + GROUP - 1}: every job is accounted for, whatever breaks`, () => runGroup(first));
