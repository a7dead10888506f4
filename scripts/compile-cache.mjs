// Keeps what Node makes of sources (types stripped, compiled) from one test run to the next: an entry counts only for the same contents.
// Preloaded for tests; where it cannot be written they are only slower.

import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { MODULES } from "./lib/paths.mjs";

enableCompileCache(join(MODULES, ".cache", "compile"));
