// printjob: prints everything that the server stores about a job (docs/reference/commands.md 6). Only root may run it; in
// user mode, the user who owns the complex.

import { readFileSync } from "node:fs";
import { ServerUnreachable } from "#protocol/client.ts";
import type { WireAttrs } from "#protocol/messages.ts";
import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex, cannotConnect, statusItems } from "../../complex.ts";
import { ctimeOfText } from "../../dates.ts";
import { optionFault, scanOptions } from "../../getopt.ts";
import { completeJobId } from "../../job-ids.ts";

const USAGE = `usage: printjob [-a|-s] jobid|file
       printjob --version
`;
const FRAME = "-".repeat(51);
const FAILED = 1;
/** The letters of job states. The index of a letter is the number of the state in the files of PBS. */
const STATES = "TQHWREXBMF";

export const run: Command = asCommand("printjob", USAGE, printjob);

type Part = "all" | "attributes" | "script";

export async function printjob(io: CommandIo, complex: Complex): Promise<number> {
  if (complex.conf().mode === "system" && complex.uid() !== 0) {
    io.err("printjob must be run by root\n");
    return FAILED;
  }
  const scan = scanOptions(io.argv, "as");
  const faults = scan.events.flatMap((event) => optionFault("printjob", event) ?? []);
  if (faults.length > 0 || scan.operands.length === 0 || scan.events.length > 1) {
    io.err(faults.map((fault) => `${fault}\n`).join("") + USAGE);
    return FAILED;
  }
  const part: Part = scan.events.length === 0 ? "all" : scan.events[0]?.letter === "a" ? "attributes" : "script";
  let status = 0;
  for (const operand of scan.operands) {
    const id = await completeJobId(complex, idOfFile(operand));
    if (id.kind !== "id" || !(await printOne(io, complex, id.id, part))) {
      if (id.kind !== "id") io.err(`printjob: illegally formed job identifier: ${operand}\n`);
      status = FAILED;
    }
  }
  return status;
}

/** Returns the job id that the name of a job file has: mom_priv/jobs/1.svr.JB -> 1.svr. */
const idOfFile = (operand: string): string => operand.replace(/^.*\//, "").replace(/\.(?:JB|SC)$/, "");

async function printOne(io: CommandIo, complex: Complex, id: string, part: Part): Promise<boolean> {
  if (part === "script") return printScript(io, complex, id);
  try {
    const link = await complex.connect();
    const { items } = await statusItems(link, { kind: "status", object: "job", ids: [id], history: "with" });
    link.close();
    const [job] = items;
    if (job === undefined || !("attrs" in job)) {
      io.err(`Job ${id} not found\n`);
      return false;
    }
    io.out(part === "all" ? headText(id, job.attrs) + attributesText(job.attrs) : attributesText(job.attrs));
    return true;
  } catch (error) {
    if (!(error instanceof ServerUnreachable)) throw error;
    cannotConnect(io, "printjob", complex, error);
    return false;
  }
}

function headText(id: string, attrs: WireAttrs): string {
  const text = (name: string): string => {
    const value = attrs[name];
    return typeof value === "string" ? value : "";
  };
  const hex = (number: number): string => `0x${number.toString(16)}`;
  const time = (name: string): string => (text(name) === "" ? "0" : `${text(name)} (${ctimeOfText(text(name))})`);
  const flags = text("array") === "True" ? 0x1000 : id.includes("[") ? 0x2000 : 0x1;
  return `${FRAME}
jobid:\t${id}
${FRAME}
state:\t\t${hex(STATES.indexOf(text("job_state")))}
substate:\t${hex(Number(text("substate")))} (${text("substate")})
svrflgs:\t${hex(flags)} (${flags})
stime:\t\t${time("stime")}
obittime:\t${time("obittime")}
file base:\t${text("hashname") || id}
queue:\t\t${text("queue")}
union type exec:
\tstation:\t${text("exec_host")}
`;
}

function attributesText(attrs: WireAttrs): string {
  let text = "--attributes--\n";
  for (const [name, value] of Object.entries(attrs)) {
    if (typeof value === "string") text += `${name} = ${value}\n`;
    else if (Array.isArray(value)) text += value.map((entry) => `${name} = ${entry}\n`).join("");
    else for (const [resource, amount] of Object.entries(value)) text += `${name}.${resource} = ${amount}\n`;
  }
  return `${text}\n`;
}

/** Prints the job's script if it is in a file: while the job runs, its mom has such a file. */
function printScript(io: CommandIo, complex: Complex, id: string): boolean {
  const { home } = complex.conf();
  for (const directory of ["server_priv/jobs", "mom_priv/jobs"]) {
    try {
      const script = readFileSync(`${home}/${directory}/${id}.SC`, "utf8");
      io.out(`${FRAME}\nJobscript for jobid:${id}\n${FRAME}\n\n${script}\n`);
      return true;
    } catch {
      // This directory does not have the script. The next one may have it.
    }
  }
  io.err(`Job script for ${id} not found\n`);
  return false;
}
