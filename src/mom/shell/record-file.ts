// The file with the records of runs (../driver/record-log.ts), PBS_HOME/mom_priv/jobs/records.

import { closeSync, constants, fdatasyncSync, openSync, readFileSync, renameSync, rmSync } from "node:fs";
import type { RecordFile } from "../driver/ports.ts";
import { writeWhole } from "../starter/journal.ts";

const FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW;

/** Returns the file of records at a path. It is opened at the first write. */
export function recordFile(path: string): RecordFile {
  let fd = -1;
  return {
    name: path,
    read() {
      try {
        return readFileSync(path, "utf8");
      } catch {
        return "";
      }
    },
    putAside: () => renameSync(path, `${path}.BD`),
    replace(text) {
      const out = openSync(`${path}.new`, FLAGS | constants.O_TRUNC, 0o600);
      try {
        writeWhole(out, text);
        fdatasyncSync(out);
        renameSync(`${path}.new`, path);
      } catch (error) {
        closeSync(out);
        rmSync(`${path}.new`, { force: true });
        throw error;
      }
      if (fd >= 0) closeSync(fd);
      fd = out;
    },
    append(text) {
      if (fd < 0) fd = openSync(path, FLAGS, 0o600);
      writeWhole(fd, text);
    },
    close() {
      if (fd >= 0) closeSync(fd);
      fd = -1;
    },
  };
}
