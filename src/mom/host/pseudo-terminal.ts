// Makes and writes pseudo terminals. The terminal relay makes one with its own identity: the kernel then gives the slave to
// that user, so the owner of the slave need not be changed.

import { writeSync } from "node:fs";
import { codeOf } from "#support/caught.ts";
import { libc } from "#support/libc/libc.ts";

const O_RDWR = 2;
const O_NOCTTY = 0o400;
const O_NONBLOCK = 0o4000;
const O_CLOEXEC = 0o2000000;
const NAME_BYTES = 128;

/** Makes a pseudo terminal. master: its descriptor, closed on exec, not blocking. path: the path of the slave. Throws with the C library's message. */
export function openPseudoTerminal(): { readonly master: number; readonly path: string } {
  const { koffi, libc: library } = libc();
  const strerror = library.func("const char *strerror(int error)");
  const must = (what: string, failed: boolean): void => {
    if (failed) throw new Error(`${what}: ${String(strerror(koffi.errno()))}`);
  };
  const master = Number(library.func("int posix_openpt(int flags)")(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  must("posix_openpt", master < 0);
  must("grantpt", Number(library.func("int grantpt(int fd)")(master)) !== 0);
  must("unlockpt", Number(library.func("int unlockpt(int fd)")(master)) !== 0);
  const name = Buffer.alloc(NAME_BYTES);
  must("ptsname_r", Number(library.func("int ptsname_r(int fd, _Out_ uint8_t *name, size_t bytes)")(master, name, NAME_BYTES)) !== 0);
  return { master, path: name.toString("latin1", 0, name.indexOf(0)) };
}

/** Whether a path names a pseudo terminal's slave. No other path is opened as a job's terminal. */
export const isPseudoTerminal = (path: string): boolean => /^\/dev\/pts\/\d{1,9}$/.test(path);

/** Interval at which a full terminal is written to again. No event tells when it accepts more (libuv could only write to it by blocking). */
const ASK_AGAIN_MS = 10;

export type TerminalWriter = {
  /** Writes bytes. Returns false if the terminal is full: the rest is written later, and then `onEmpty` is called. */
  write(bytes: Uint8Array): boolean;
  close(): void;
};

/** Returns a writer to the master of a pseudo terminal. It never blocks, even if the programs at the slave read nothing. */
export function terminalWriter(master: number, onEmpty: () => void): TerminalWriter {
  let waiting: Uint8Array[] = [];
  let timer: NodeJS.Timeout | null = null;
  let open = true;
  /** Writes what waits. Returns false if some of it still waits. */
  const pump = (): boolean => {
    timer = null;
    for (let [first] = waiting; open && first !== undefined; [first] = waiting) {
      try {
        const written = writeSync(master, first);
        if (written < first.length) waiting[0] = first.subarray(written);
        else waiting.shift();
      } catch (error) {
        if (codeOf(error) === "EAGAIN") {
          timer = setTimeout(() => pump() && onEmpty(), ASK_AGAIN_MS);
          return false;
        }
        // EIO: no process has the slave open any more. The reader of the terminal reports that.
        waiting = [];
      }
    }
    return true;
  };
  return {
    write(bytes) {
      waiting.push(Buffer.from(bytes));
      return timer === null ? pump() : false;
    },
    close() {
      open = false;
      if (timer !== null) clearTimeout(timer);
    },
  };
}
