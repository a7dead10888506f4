// The C library through koffi, loaded on first use, for system calls that Node does not offer. Daemons and `partita` use it; of
// the commands only `qsub -I` does.

import { createRequire } from "node:module";
import type koffiModule from "koffi";

type Koffi = typeof koffiModule;
type IKoffiLib = ReturnType<Koffi["load"]>;

let loaded: { readonly koffi: Koffi; readonly libc: IKoffiLib } | null = null;

/** koffi and libc.so.6. Throws if the platform lacks either. */
export function libc(): { readonly koffi: Koffi; readonly libc: IKoffiLib } {
  if (loaded === null) {
    const koffi = createRequire(import.meta.url)("koffi") as Koffi;
    loaded = { koffi, libc: koffi.load("libc.so.6") };
  }
  return loaded;
}
