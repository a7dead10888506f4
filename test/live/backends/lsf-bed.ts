// The stand-in for LSF's commands (test/backends/lsf/stand-in.mjs) as a directory of programs.

import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../shared.ts";

const STAND_IN = join(ROOT, "test", "backends", "lsf", "stand-in.mjs");

/** lsf: the state of the stand-in; in it a file `down` or `hang` makes faults, and the file `slots` says how many cpus there are. bin: for the attribute of the same name. */
export type LsfBed = { readonly lsf: string; readonly bin: string };

export function installStandIn(dir: string): LsfBed {
  const bed = { lsf: join(dir, "lsf"), bin: join(dir, "bin") };
  for (const each of [bed.lsf, bed.bin]) mkdirSync(each);
  for (const name of ["bsub", "bjobs", "bkill", "bqueues"]) {
    writeFileSync(join(bed.bin, name), `#!/bin/sh\nexec '${process.execPath}' '${STAND_IN}' '${bed.lsf}' ${name} "$@"\n`);
    chmodSync(join(bed.bin, name), 0o755);
  }
  return bed;
}
