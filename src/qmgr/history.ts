// The history of request lines, kept from one session to the next (docs/reference/qmgr.md 1) in $HOME/.pbs_qmgr_history, or else in
// PBS_HOME/spool/.pbs_qmgr_history_USER. It has at most 500 lines. A line that is equal to the one before it is not added.

import { appendFileSync, closeSync, constants, fstatSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const HISTORY_LINES_MAX = 500;

export type History = {
  readonly lines: readonly string[];
  add(line: string): void;
  /** the message to show if no file can be used */
  readonly fault: string | undefined;
};

export function openHistory(home: string | undefined, pbs_home: string, user: { readonly name: string; readonly uid: number }): History {
  const files = [
    ...(home === undefined || home === "" ? [] : [join(home, ".pbs_qmgr_history")]),
    join(pbs_home, "spool", `.pbs_qmgr_history_${user.name}`),
  ];
  const file = files.find((each) => canWrite(each, user.uid));
  const lines = file === undefined ? [] : readLines(file);
  if (file !== undefined && lines.length > HISTORY_LINES_MAX) {
    lines.splice(0, lines.length - HISTORY_LINES_MAX);
    writeFileSync(file, lines.map((line) => `${line}\n`).join(""), { mode: 0o600 });
  }
  return {
    lines,
    fault: file === undefined ? `Cannot read/write history file ${files[0]}, history across sessions disabled` : undefined,
    add(line) {
      if (lines.at(-1) === line) return;
      lines.push(line);
      if (lines.length > HISTORY_LINES_MAX) lines.shift();
      try {
        if (file !== undefined) appendFileSync(file, `${line}\n`);
      } catch {
        // The disk is full, or the file was removed: this session keeps its history in memory.
      }
    },
  };
}

/**
 * Whether the file can be used as history. All users may write in spool, so a file there must be a regular file of our own, and not a link made by another
 * user.
 */
function canWrite(file: string, uid: number): boolean {
  try {
    const fd = openSync(file, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o600);
    const stat = fstatSync(fd);
    closeSync(fd);
    return stat.isFile() && stat.nlink === 1 && stat.uid === uid;
  } catch {
    return false;
  }
}

function readLines(file: string): string[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "");
}
