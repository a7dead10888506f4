// Rows of requests that are meant to keep the server busy: the slowest answer that another connection gets meanwhile, and what the server's memory grows by.

import { serverSocketPath } from "#protocol/wire/socket-path.ts";
import { systemUsers } from "#support/passwd.ts";
import { startComplex } from "../test/live/complex.ts";
import { attack, FREEZING, prepare, residentAfterCollectionKB, type Size } from "../test/live/server/freezing-requests.ts";
import type { Row } from "./row.ts";

const SIZE: Size = { connections: 100, requests: 2000, entries: 20_000, jobs: 10_000 };
const SENDER = "pbsuser1";
const LASTING_MS = Number(process.env["PARTITA_FREEZE_MS"] ?? 15_000);
const GROWTH_KB_MAX = 200 * 1024;

export async function freezeRows(say: (text: string) => void): Promise<Row[]> {
  const rows: Row[] = [];
  // If there are two users, root asks and the owner of the complex sends, because turns are divided among users first.
  const uid = process.getuid?.() === 0 ? systemUsers().userByName(SENDER)?.uid : undefined;
  if (uid === undefined) say(`there is no user ${SENDER}, or this is not root: one user sends and asks`);
  const complex = await startComplex({ mode: "user", ...(uid === undefined ? {} : { owner: SENDER }) });
  try {
    const path = serverSocketPath(complex.pbsHome);
    const pid = complex.pid("server") as number;
    say("10,000 jobs that wait, 10,000 finished ones");
    const known = await prepare(path, SIZE, uid);
    for (const freezing of FREEZING) {
      say(freezing.name);
      const before = await residentAfterCollectionKB(pid);
      const { slowest_ms, slowest_cpu_ms, peak_kB } = await attack(path, pid, freezing, SIZE, known, LASTING_MS, uid);
      rows.push({ work: `${freezing.name}: slowest answer to another`, value: slowest_ms / 1000, unit: "s", limit: 1 });
      rows.push({ work: `${freezing.name}: processor time of the server before it`, value: slowest_cpu_ms / 1000, unit: "s", limit: null });
      rows.push({ work: `${freezing.name}: memory of the server, at most more`, value: peak_kB - before, unit: "kB", limit: null });
      const grown_kB = (await residentAfterCollectionKB(pid)) - before;
      rows.push({ work: `${freezing.name}: memory of the server afterwards`, value: grown_kB, unit: "kB", limit: GROWTH_KB_MAX });
    }
  } finally {
    await complex.stop();
  }
  return rows;
}
