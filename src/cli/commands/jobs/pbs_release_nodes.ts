// pbs_release_nodes: releases hosts or vnodes of a running job, except its first host (docs/reference/commands.md 3).

import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex } from "../../complex.ts";
import { optionFault, scanOptions } from "../../getopt.ts";
import { requestForJobs } from "../../job-requests.ts";

const USAGE = `usage: pbs_release_nodes [-j job_identifier] host_or_vnode1 host_or_vnode2 ...
       pbs_release_nodes [-j job_identifier] -a
       pbs_release_nodes [-j job_identifier] -k <select string | node count>
       pbs_release_nodes --version
`;
const FAILED = 2;

export const run: Command = asCommand("pbs_release_nodes", USAGE, pbsReleaseNodes);

async function pbsReleaseNodes(io: CommandIo, complex: Complex): Promise<number> {
  const scan = scanOptions(io.argv, "j:k:a");
  let [faults, all, keep] = ["", false, ""];
  let job = io.env["PBS_JOBID"] ?? "";
  for (const event of scan.events) {
    const fault = optionFault("pbs_release_nodes", event);
    if (fault !== null) faults += `${fault}\n`;
    else if (event.kind === "option" && event.letter === "j") job = event.value;
    else if (event.kind === "option" && event.letter === "k") keep = event.value;
    else all = true;
  }
  if (faults === "" && all && keep !== "") faults = "pbs_release_nodes: -a and -k options cannot be used together\n";
  else if (faults === "" && (all || keep !== "") === scan.operands.length > 0) faults = USAGE;
  else if (faults === "" && job === "") faults = "pbs_release_nodes: No jobid given\n";
  else if (faults === "" && keep !== "" && !/^(\d{1,9}|select=.+)$/.test(keep)) faults = "pbs_release_nodes: illegal -k value\n";
  else if (faults !== "") faults += USAGE;
  if (faults !== "") {
    io.err(faults);
    return FAILED;
  }
  return requestForJobs(io, complex, {
    command: "pbs_release_nodes",
    operands: [job],
    request: (id) => ({
      kind: "release-nodes",
      job: id,
      nodes: scan.operands,
      ...(all ? { all: true } : {}),
      ...(keep === "" ? {} : { keep }),
    }),
    refusal: (reply, id) => `pbs_release_nodes: ${reply.text ?? `Server returned error ${reply.code} for job ${id}`}\n`,
  });
}
