// qstart, qstop, qenable and qdisable: change one attribute of queues (docs/reference/commands.md 3). They have no options:
// every word is a queue.

import { ServerUnreachable } from "#protocol/client.ts";
import type { Command, CommandIo } from "./command.ts";
import { asCommand, type CommandBody, type Complex, type Link, mustBeOurs } from "./complex.ts";
import { type Destination, parseDestination } from "./destinations.ts";

const FAILED = 2;
const MALFORMED = 1;

export type QueueSwitch = { readonly command: string; readonly attribute: "started" | "enabled"; readonly value: "True" | "False" };

const usage = (command: string): string => `Usage: ${command} [queue][@server] ...\n       ${command} --version\n`;

export function queueSwitch(spec: QueueSwitch): Command {
  return asCommand(spec.command, usage(spec.command), queueSwitchBody(spec));
}

/** Changes the queues in the given order, also after a failure. The exit status tells about the last failure: 2, or 1 if a word is not a destination. */
export function queueSwitchBody(spec: QueueSwitch): CommandBody {
  return async (io, complex) => {
    if (io.argv.length === 0) {
      io.err(usage(spec.command));
      return 1;
    }
    let status = 0;
    let link: Link | null = null;
    for (const operand of io.argv) {
      const destination = parseDestination(operand);
      if (destination === null) {
        io.err(`${spec.command}: illegally formed destination: ${operand}\n`);
        status = MALFORMED;
        continue;
      }
      try {
        await mustBeOurs(complex, destination.server);
        link ??= await complex.connect();
        if (!(await setQueue(io, link, spec, destination))) status = FAILED;
      } catch (error) {
        if (!(error instanceof ServerUnreachable)) throw error;
        tellUnreachable(io, complex, spec.command, destination.server ?? "", error);
        status = FAILED;
      }
    }
    link?.close();
    return status;
  };
}

/** Changes one queue. queue "": all queues. */
async function setQueue(io: CommandIo, link: Link, spec: QueueSwitch, { queue, server }: Destination): Promise<boolean> {
  const attrs = [{ name: spec.attribute, op: "=", value: spec.value }] as const;
  const reply = await link.request({ kind: "manager", verb: "set", object: "queue", name: queue, attrs });
  if (reply.ok) return true;
  io.err(`${spec.command}: ${reply.text ?? `Server returned error ${reply.code}`} ${queue}${server === null ? "" : `@${server}`}\n`);
  return false;
}

/** Prints the two lines with which qstop, qterm and similar commands report a server that does not answer. */
export function tellUnreachable(io: CommandIo, complex: Complex, command: string, server: string, error: ServerUnreachable): void {
  io.err(`${error.line}\n${command}: could not connect to server ${server || complex.serverMeant()} (${error.pbse})\n`);
}
