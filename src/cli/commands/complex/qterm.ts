// qterm: stops the server, and on request schedulers and moms too (docs/reference/commands.md 3).

import { ServerUnreachable } from "#protocol/client.ts";
import type { ShutdownRequest } from "#protocol/messages.ts";
import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex, mustBeOurs } from "../../complex.ts";
import { optionFault, scanOptions } from "../../getopt.ts";
import { tellUnreachable } from "../../queue-switch.ts";

const USAGE = `Usage: qterm [-t immediate|delay|[quick]] [-m] [-s] [-f|-i] [server ...]
       qterm --version
`;
const FAILED = 2;

export const run: Command = asCommand("qterm", USAGE, qterm);

export async function qterm(io: CommandIo, complex: Complex): Promise<number> {
  const scan = scanOptions(io.argv, "t:msfFi");
  let [faults, faulty, failover] = ["", false, ""];
  let request: ShutdownRequest = { kind: "shutdown", manner: "quick", scheds: false, moms: false };
  for (const event of scan.events) {
    const fault = optionFault("qterm", event);
    if (fault !== null) faults += `${fault}\n`;
    else if (event.letter === "m") request = { ...request, moms: true };
    else if (event.letter === "s") request = { ...request, scheds: true };
    else if (event.letter !== "t") failover += event.letter;
    else if (event.kind === "option" && isManner(event.value)) request = { ...request, manner: event.value };
    else faulty = true;
  }
  if (faults !== "" || faulty || failover.length > 1) {
    io.err(faults + USAGE);
    return 1;
  }
  // -f, -F and -i concern the second server of a complex. If there is only one server, -f has no effect, and -F and -i are refused.
  const has_pair = complex.conf().pair !== null;
  if (!has_pair && (failover === "F" || failover === "i")) {
    io.err(`qterm: No support for requested service ${complex.conf().server}\n`);
    return FAILED;
  }
  if (has_pair && failover === "f") request = { ...request, other: "stop" };
  if (has_pair && failover === "i") request = { ...request, other: "idle" };
  if (has_pair && failover === "F") request = { ...request, secondary_only: true };
  let status = 0;
  for (const server of scan.operands.length === 0 ? [""] : scan.operands) {
    if (!(await stop(io, complex, server, request))) status = FAILED;
  }
  return status;
}

const isManner = (text: string): text is ShutdownRequest["manner"] => ["immediate", "delay", "quick"].includes(text);

async function stop(io: CommandIo, complex: Complex, server: string, request: ShutdownRequest): Promise<boolean> {
  try {
    await mustBeOurs(complex, server);
    const link = await complex.connect();
    const reply = await link.request(request);
    link.close();
    if (reply.ok) return true;
    io.err(`qterm: ${reply.text ?? `Server returned error ${reply.code}`} ${server}\n`);
    return false;
  } catch (error) {
    if (!(error instanceof ServerUnreachable)) throw error;
    tellUnreachable(io, complex, "qterm", server, error);
    return false;
  }
}
