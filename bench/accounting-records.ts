// Counting jobs' starts and ends while they run, without taking part in what is measured: only what the accounting files have grown by is read.

import { closeSync, existsSync, openSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const LOOK_MS = 20;
const chunk = Buffer.alloc(1 << 20);

/**
 * Resolves when the accounting has this number of records of a type (S started, E ended) with matching ids. pbsHome: PBS_HOME
 * of a complex that had none of them before.
 */
export async function untilRecorded(pbsHome: string, wanted: "S" | "E", count: number, id = /^/): Promise<void> {
  const directory = join(pbsHome, "server_priv", "accounting");
  const at = new Map<string, number>();
  const rest = new Map<string, string>();
  let found = 0;
  const look = (name: string): void => {
    const fd = openSync(join(directory, name), "r");
    let text = rest.get(name) ?? "";
    let position = at.get(name) ?? 0;
    for (let size = readSync(fd, chunk, 0, chunk.length, position); size > 0; size = readSync(fd, chunk, 0, chunk.length, position)) {
      position += size;
      text += chunk.toString("latin1", 0, size);
    }
    closeSync(fd);
    const lines = text.split("\n");
    rest.set(name, lines.pop() ?? "");
    at.set(name, position);
    for (const line of lines) {
      const [, type, job] = line.split(";", 3);
      if (type === wanted && id.test(job ?? "")) found++;
    }
  };
  for (;;) {
    if (existsSync(directory)) for (const name of readdirSync(directory)) look(name);
    if (found >= count) return;
    await sleep(LOOK_MS);
  }
}
