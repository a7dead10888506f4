// Resources of the site in mom_priv/config: `name value`, and `name !program arguments`, whose first line of output is the value (docs/reference/execution.md 7).
//
// N1. No shell reads the line. A program is run only if nobody but root and the mom's user could have written it.
// N2. If a program fails, prints nothing or takes too long, its resource has no value. This is logged once, when the problem begins.

import { spawn } from "node:child_process";
import { messageOf } from "#support/caught.ts";
import { trustedFile } from "#support/trusted-file.ts";
import { trustedOwners } from "./action-run.ts";

export type SiteValues = { readonly [name: string]: string };
type Outcome = { readonly value: string } | { readonly problem: string };

const OUTPUT_CHARS_MAX = 65_536;

export type SiteReader = { read(site: SiteValues, alarm_s: number): Promise<SiteValues> };

export function siteReader(complain: (text: string) => void): SiteReader {
  const failing = new Set<string>();
  return {
    async read(site, alarm_s) {
      const found = await Promise.all(
        Object.entries(site).map(async ([name, text]): Promise<readonly [string, string] | null> => {
          const outcome = text.startsWith("!") ? await ask(text.slice(1).trim(), alarm_s) : { value: text };
          if ("value" in outcome) {
            failing.delete(name);
            return [name, outcome.value];
          }
          if (!failing.has(name)) complain(`resource ${name}: ${outcome.problem}`);
          failing.add(name);
          return null;
        }),
      );
      return Object.fromEntries(found.filter((each) => each !== null));
    },
  };
}

function ask(command: string, alarm_s: number): Promise<Outcome> {
  const [program = "", ...args] = command.split(/[ \t]+/);
  return new Promise((resolve) => {
    let path: string;
    try {
      if (!program.startsWith("/")) throw new Error(`${program} must be an absolute path`);
      path = trustedFile(program, trustedOwners());
    } catch (error) {
      resolve({ problem: messageOf(error) });
      return;
    }
    const child = spawn(path, args, {
      cwd: "/",
      detached: true,
      env: { PATH: "/usr/bin:/bin:/usr/sbin:/sbin" },
      stdio: ["ignore", "pipe", "ignore"],
    });
    let output = "";
    let late = false;
    const alarm = setTimeout(() => {
      late = true;
      if (child.pid !== undefined) killGroup(child.pid);
      child.stdout.destroy();
    }, alarm_s * 1000);
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (output.length < OUTPUT_CHARS_MAX) output += text;
    });
    child.once("error", (error) => {
      clearTimeout(alarm);
      resolve({ problem: error.message });
    });
    child.once("close", (code, signal) => {
      clearTimeout(alarm);
      const value = output.split("\n", 1)[0]?.trim() ?? "";
      if (late) resolve({ problem: `${program} takes longer than ${alarm_s} s` });
      else if (code !== 0) resolve({ problem: `${program} ended with ${code ?? signal}` });
      else resolve(value === "" ? { problem: `${program} says nothing` } : { value });
    });
  });
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The process group no longer exists.
  }
}
