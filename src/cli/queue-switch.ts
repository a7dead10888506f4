// qstart, qstop, qenable and qdisable: one attribute of queues on or off (pbs/commands.md 3). They know no options: every word is a queue.

import { ServerUnreachable } from "#protocol/client.ts";
import type { Command, CommandIo } from "./command.ts";
import { asCommand, type CommandBody, type Complex, type Link, mustBeOurs } from "./complex.ts";

const FAILED = 2;

export type QueueSwitch = { readonly command: string; readonly attribute: "started" | "enabled"; readonly value: "True" | "False" };

const usage = (command: string): string => `Usage: ${command} [queue][@server] ...\n       ${command} --version\n`;

export function queueSwitch(spec: QueueSwitch): Command {
  return asCommand(spec.command, usage(spec.command), queueSwitchBody(spec));
}

/** Every queue is tried; the exit status is 2 when one failed. */
export function queueSwitchBody(spec: QueueSwitch): CommandBody {
  return async (io, complex) => {
    if (io.argv.length === 0) {
      io.err(usage(spec.command));
      return 1;
    }
    let status = 0;
    let link: Link | null = null;
    for (const operand of io.argv) {
      const at = operand.indexOf("@");
      const [queue, server] = at < 0 ? [operand, ""] : [operand.slice(0, at), operand.slice(at + 1)];
      try {
        await mustBeOurs(complex, server);
        link ??= await complex.connect();
        if (!(await setQueue(io, link, spec, queue))) status = FAILED;
      } catch (error) {
        if (!(error instanceof ServerUnreachable)) throw error;
        tellUnreachable(io, complex, spec.command, server, error);
        status = FAILED;
      }
    }
    link?.close();
    return status;
  };
}

/** queue "": all of them. */
async function setQueue(io: CommandIo, link: Link, spec: QueueSwitch, queue: string): Promise<boolean> {
  const attrs = [{ name: spec.attribute, op: "=", value: spec.value }] as const;
  const reply = await link.request({ kind: "manager", verb: "set", object: "queue", name: queue, attrs });
  if (reply.ok) return true;
  io.err(`${spec.command}: ${reply.text ?? `Server returned error ${reply.code}`} ${queue}\n`);
  return false;
}

/** The two lines of qstop, qterm and their like for a server that does not answer. */
export function tellUnreachable(io: CommandIo, complex: Complex, command: string, server: string, error: ServerUnreachable): void {
  io.err(`${error.line}\n${command}: could not connect to server ${server || complex.serverMeant()} (${error.pbse})\n`);
}
