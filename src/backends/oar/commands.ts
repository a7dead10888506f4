// OAR through its commands: oarsub, oarstat, oarnodes, oarresume, oarhold and oardel.
//
// K1. If the database fails, oarstat and oarnodes print nothing on stdout and nevertheless end with status 0. So a command that has written to stderr counts as failed.

import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BackendError, cleanText } from "../contract/fault.ts";
import { batchesOf } from "../contract/sightings.ts";
import { failureOf, type Programs, programs, type RunOptions } from "../shell/programs.ts";
import { readCapacity, readOarnodes, readOarstat } from "./answer.ts";
import { isOnlyGone, oarKind } from "./faults.ts";
import type { OarAction, OarLink } from "./link.ts";
import type { OarOptions } from "./options.ts";
import { checkedId, idsSql, liveSql, type OarArray, oarsubArgs, runningSql } from "./request.ts";

/** Largest number of jobs in one command line. */
const IDS_MAX = 500;
const PROGRAM: Readonly<Record<OarAction, string>> = { resume: "oarresume", hold: "oarhold", delete: "oardel" };

export function oarCommands({ bin, timeout_ms }: OarOptions, of: { readonly grid: string; readonly cluster: string }): OarLink {
  // oarsub takes the directory of a job from PWD, and fails if PWD is not set.
  const oar = programs({ bin, env: { PWD: "/" }, timeout_ms });
  const run = runner(oar, timeout_ms);
  const act: OarLink["act"] = async (action, ids, owner) => {
    for (const batch of batchesOf(ids, IDS_MAX)) await run.lenient(PROGRAM[action], batch.map(checkedId), owner);
  };
  const stat = async (sql: string) => readOarstat(await run.strict("oarstat", ["-J", "-f", "--sql", sql]));
  return {
    probe: async () => cleanText((await run.strict("oarstat", ["--version"])).replace(/^OAR version\s*:\s*/, "")),
    submit: (array, owner) => withFile(array, (path) => run.submission(oarsubArgs(array, path), owner)),
    live: () => stat(liveSql(of.grid, of.cluster)),
    jobs: async (ids) => (await Promise.all(batchesOf(ids, IDS_MAX).map((batch) => stat(idsSql(batch))))).flat(),
    act,
    actOnArray: (action, array_id, owner) => run.lenient(PROGRAM[action], ["--array", checkedId(String(array_id))], owner),
    capacity: async () => {
      const used = (await stat(runningSql())).reduce((sum, { resources }) => sum + resources, 0);
      return readCapacity(readOarnodes(await run.strict("oarnodes", ["-J"])), used);
    },
  };
}

type Owner = RunOptions["owner"];

function runner(oar: Programs, timeout_ms: number) {
  return {
    /** Runs a program and returns its output. Throws if the program fails or writes to stderr (K1). */
    async strict(name: string, args: readonly string[]): Promise<string> {
      const ran = await oar.run(name, args);
      if (ran.status === 0 && ran.stderr.trim() === "") return ran.stdout;
      throw failureOf(name, ran, { timeout_ms, kindOf: oarKind });
    },
    /** Runs a program for jobs, some of which may have ended. */
    async lenient(name: string, args: readonly string[], owner: Owner): Promise<void> {
      const ran = await oar.run(name, args, { owner: owner ?? null });
      if (ran.status === 0 || (!ran.timed_out && isOnlyGone(`${ran.stdout}\n${ran.stderr}`))) return;
      throw failureOf(name, ran, { timeout_ms, kindOf: oarKind });
    },
    async submission(args: readonly string[], owner: Owner): Promise<string> {
      const ran = await oar.run("oarsub", args, { owner: owner ?? null });
      if (ran.status === 0) return ran.stdout;
      throw failureOf("oarsub", ran, { timeout_ms, kindOf: oarKind, isSubmission: true });
    },
  };
}

/** Runs a function with a file of the array's parameters, which oarsub reads as OAR's own user. What the file says is seen in OAR's lists, too. */
async function withFile<T>({ param_file }: OarArray, use: (path: string) => Promise<T>): Promise<T> {
  let directory: string;
  try {
    directory = mkdtempSync(join(tmpdir(), "partita-oar-"));
  } catch (error) {
    throw new BackendError({ kind: "transient", text: "no directory can be made for the parameters of jobs" }, { cause: error });
  }
  try {
    chmodSync(directory, 0o711);
    const path = join(directory, "parameters");
    writeFileSync(path, param_file, { mode: 0o644, flag: "wx" });
    return await use(path);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
