// qrun: starts jobs immediately, through their scheduler or on given vnodes (docs/reference/commands.md 3).

import type { ErrorReply } from "#protocol/wire/reply.ts";
import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex } from "../../complex.ts";
import { jobRefusal, PBSE_HOOKERROR, PBSE_UNKNODE } from "../../errors.ts";
import { optionFault, scanOptions } from "../../getopt.ts";
import { requestForJobs } from "../../job-requests.ts";

const USAGE = `Usage: qrun [-a] [-H vnode_specification ] job_identifier_list
       qrun [-a] [-H - ] job_identifier_list
       qrun --version
`;
const FAILED = 2;

export const run: Command = asCommand("qrun", USAGE, qrun);

export async function qrun(io: CommandIo, complex: Complex): Promise<number> {
  const scan = scanOptions(io.argv, "aH:");
  let [faults, async] = ["", false];
  let exec_vnode: string | null = null;
  for (const event of scan.events) {
    const fault = optionFault("qrun", event);
    if (fault !== null) faults += `${fault}\n`;
    else if (event.kind === "option" && event.letter === "H") {
      exec_vnode = event.value;
      if (exec_vnode === "") faults += "qrun: illegal -H value\n";
    } else async = true;
  }
  if (faults !== "" || scan.operands.length === 0) {
    io.err(faults + USAGE);
    return 1;
  }
  const status = await requestForJobs(io, complex, {
    command: "qrun",
    operands: scan.operands,
    request: (job) => ({ kind: "run-job", job, ...(exec_vnode === null ? {} : { exec_vnode }), ...(async ? { async } : {}) }),
    refusal: (reply, id) => refusal(reply, id, exec_vnode),
  });
  return status === 0 ? 0 : FAILED;
}

/** A line that lists unknown vnodes is cut to this length. */
const LINE_CHARS_MAX = 255;

function refusal(reply: ErrorReply, id: string, exec_vnode: string | null): string {
  if (reply.code === PBSE_UNKNODE) {
    const line = `qrun: Unknown node  ${exec_vnode ?? ""}`;
    return line.length > LINE_CHARS_MAX ? `${line.slice(0, LINE_CHARS_MAX)}...\n` : `${line}\n`;
  }
  if (reply.code === PBSE_HOOKERROR) return `qrun: Failed to run: ${reply.text} (${reply.code}) ${id}\n`;
  return jobRefusal("qrun", reply, id);
}
