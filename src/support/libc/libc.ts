// The C library through koffi, loaded on first use: what Node has no call for. Daemons and `partita` get here; of the commands only `qsub -I`.

import { createRequire } from "node:module";
import type koffiModule from "koffi";

type Koffi = typeof koffiModule;
type IKoffiLib = ReturnType<Koffi["load"]>;

let loaded: { readonly koffi: Koffi; readonly libc: IKoffiLib } | null = null;

/** koffi and libc.so.6. Throws where the platform has neither. */
export function libc(): { readonly koffi: Koffi; readonly libc: IKoffiLib } {
  if (loaded === null) {
    const koffi = createRequire(import.meta.url)("koffi") as Koffi;
    loaded = { koffi, libc: koffi.load("libc.so.6") };
  }
  return loaded;
}
