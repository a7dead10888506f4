// pbs_dataservice: starts and stops the service that keeps PBS's data, or shows its state (docs/reference/commands.md 6). In
// Partita pbs_server itself keeps the data, so the service runs while the server runs.

import { ServerUnreachable } from "#protocol/client.ts";
import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex } from "../../complex.ts";

const USAGE = `usage: pbs_dataservice start|stop|status
       pbs_dataservice --version
`;
const FAILED = 1;

export const run: Command = asCommand("pbs_dataservice", USAGE, pbsDataservice);

export async function pbsDataservice(io: CommandIo, complex: Complex): Promise<number> {
  const [verb, ...more] = io.argv;
  if (more.length > 0 || !(verb === "start" || verb === "stop" || verb === "status")) {
    io.err(USAGE);
    return FAILED;
  }
  if (complex.conf().mode === "system" && complex.uid() !== 0) {
    io.err("pbs_dataservice: Must be run by root\n");
    return FAILED;
  }
  const running = await isRunning(complex);
  const state = `PBS Data Service ${running ? "running" : "not running"}\n`;
  // The service cannot be started or stopped apart from the server. So a start succeeds only if the service runs already, and a stop only if it does not run.
  if (verb === "status" || running === (verb === "start")) {
    io.out(state);
    return running || verb === "stop" ? 0 : FAILED;
  }
  io.err(`${state}pbs_dataservice: pbs_server keeps the data itself: ${running ? "qterm stops it" : "start pbs_server"}\n`);
  return FAILED;
}

async function isRunning(complex: Complex): Promise<boolean> {
  try {
    (await complex.connect()).close();
    return true;
  } catch (error) {
    if (error instanceof ServerUnreachable) return false;
    throw error;
  }
}
