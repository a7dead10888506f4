// The second half of a thousand simulated complexes.

import { testSeeds } from "./seed-groups.ts";

testSeeds(501, 1000);
