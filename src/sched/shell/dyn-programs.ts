// Runs the programs of server_dyn_res: all of them run at the same time before a cycle, and what they print are the server's
// amounts of resources (shapes/dyn-res.ts).

import { type ChildProcess, spawn } from "node:child_process";
import { messageOf } from "#support/caught.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { trustedFile } from "#support/trusted-file.ts";
import type { DynValues } from "../driver/ports.ts";
import { type DynProgram, dynValue, nothingOf } from "../shapes/dyn-res.ts";
import type { ResourceSpace } from "../shapes/resource-space.ts";

type Record = (event: number, object: string, text: string) => void;
export type DynPrograms = {
  /** Runs the programs and returns the amounts that they report. alarm_s: their time limit; 0: none. Never rejects. */
  ask(programs: readonly DynProgram[], space: ResourceSpace, alarm_s: number): Promise<DynValues>;
  /** Kills the programs that are running. */
  stop(): void;
};

const OUTPUT_BYTES_MAX = 65_536;
const EACCES = 13;

export function dynPrograms(record: Record): DynPrograms {
  const running = new Set<ChildProcess>();
  const say = (text: string, event: number = LOG_EVENT.DEBUG): void => record(event, "server_dyn_res", text);

  async function valueOfProgram({ resource, program, args }: DynProgram, space: ResourceSpace, alarm_s: number) {
    const def = space.all.get(resource);
    if (def === undefined) {
      say(`${resource} is no resource: ${program} is not run`, LOG_EVENT.SCHED);
      return null;
    }
    const path = secured(program, resource);
    const output = path === null ? null : await run(path, program, args, alarm_s);
    const value = output === null ? null : dynValue(def, output);
    if (output !== null && value === null)
      say(`Program ${program} returned no value of ${resource}: ${JSON.stringify(output.slice(0, 80))}`);
    if (value === null && path !== null) say(`Setting resource ${resource} to 0`);
    return [resource, value ?? nothingOf(def)] as const;
  }

  /** Returns the real path of a program's file if the file is safe. Otherwise writes two lines with the texts of PBS into the log, and returns null. */
  function secured(program: string, resource: string): string | null {
    const uid = process.getuid?.() ?? 0;
    try {
      return trustedFile(program, [0, uid]);
    } catch (error) {
      const text = `Permission denied (${EACCES}) in tmp_file_sec_user, Security violation "${program}" resolves to "${program}"`;
      record(LOG_EVENT.ERROR, "pbs_sched", text);
      const what = `error: ${program} file has a non-secure file access, setting resource ${resource} to 0, errno: ${EACCES}`;
      say(what, LOG_EVENT.SECURITY);
      say(`${program}: ${messageOf(error)}`, LOG_EVENT.DEBUG2);
      return null;
    }
  }

  function run(path: string, program: string, args: readonly string[], alarm_s: number): Promise<string | null> {
    return new Promise((resolve) => {
      let output = "";
      let settled = false;
      const child = spawn(path, args, { argv0: program, detached: true, stdio: ["ignore", "pipe", "ignore"] });
      const finish = (value: string | null): void => {
        if (settled) return;
        settled = true;
        clearTimeout(timer);
        running.delete(child);
        child.stdout.destroy();
        resolve(value);
      };
      const late = (): void => {
        say(`Program ${program} timed out`);
        kill(child);
        finish(null);
      };
      const timer = alarm_s > 0 ? setTimeout(late, alarm_s * 1000) : undefined;
      running.add(child);
      child.once("error", (error) => {
        say(`Can't pipe to program ${program}: ${error.message}`);
        finish(null);
      });
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        output += text;
        if (output.length > OUTPUT_BYTES_MAX) kill(child);
      });
      child.once("close", () => finish(output));
    });
  }

  return {
    async ask(programs, space, alarm_s) {
      const values = await Promise.all(programs.map((program) => valueOfProgram(program, space, alarm_s)));
      return new Map(values.filter((value) => value !== null));
    },
    stop() {
      for (const child of running) kill(child);
    },
  };
}

/** Kills a program and all its children, which are in its process group. */
function kill({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The program has ended meanwhile.
  }
}
