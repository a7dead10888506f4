// The C library, called through koffi, for system calls that Node.js does not offer. It is loaded on first use. Daemons and
// `partita` use it; of the PBS commands only `qsub -I` does.

import { createRequire } from "node:module";
import type koffiModule from "koffi";

type Koffi = typeof koffiModule;
type IKoffiLib = ReturnType<Koffi["load"]>;

let loaded: { readonly koffi: Koffi; readonly libc: IKoffiLib } | null = null;

/** Returns koffi and libc.so.6. Throws if the platform lacks one of them. */
export function libc(): { readonly koffi: Koffi; readonly libc: IKoffiLib } {
  if (loaded === null) {
    const koffi = createRequire(import.meta.url)("koffi") as Koffi;
    loaded = { koffi, libc: koffi.load("libc.so.6") };
  }
  return loaded;
}
