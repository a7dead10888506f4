// pbsdsh: runs a program as tasks of the job in which it is called, one task for each line of the job's node file
// (docs/reference/commands.md 6).

import { nth } from "#support/assert.ts";
import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex } from "../../complex.ts";
import { optionFault, scanOptions } from "../../getopt.ts";
import { connectMom, exitOf, runOf, type TaskClient, TaskRefused } from "../../task-client.ts";

const USAGE = `Usage: pbsdsh [-c copies][-s][-v][-o] -- program [args]...
       pbsdsh [-n node_index][-s][-v][-o] -- program [args]...
       pbsdsh [-h host][-s][-v][-o] -- program [args]...
       pbsdsh --version
Where -c copies = run that many copies, on the lines of the node file in turn,
      -n node_index = run one copy, on that line of the node file (the first is 0),
      -h host = run one copy on that host of the job,
      -s = run one after the other,
      -v = say what is done,
      -o = do not wait for the program's end.
`;

export const run: Command = asCommand("pbsdsh", USAGE, pbsdsh);

/** Largest value of -c; no job is that large. */
const COPIES_MAX = 100_000;

type Wish = { copies: number | null; index: number | null; host: string | null; one_by_one: boolean; verbose: boolean; leave: boolean };

/** Runs pbsdsh. Returns the highest exit status of the tasks, or 1 if a task could not be started. */
async function pbsdsh(io: CommandIo, complex: Complex): Promise<number> {
  const parsed = argumentsOf(io);
  if (typeof parsed === "string") {
    io.err(parsed + USAGE);
    return 1;
  }
  const { wish, argv } = parsed;
  const job = runOf(io.env);
  if (job === null) {
    io.err("pbsdsh: not executing under PBS\n");
    return 1;
  }
  let mom: TaskClient;
  let hosts: readonly string[];
  try {
    mom = await connectMom(io, complex, job);
    hosts = wish.host === null ? chosen((await mom.nodes()).lines, wish) : [wish.host];
  } catch (error) {
    return told(io, error);
  }
  if (hosts.length === 0) {
    io.err(`pbsdsh: the job has no node number ${wish.index ?? 0}\n`);
    return 1;
  }
  let highest = 0;
  const one = async (host: string): Promise<void> => {
    try {
      const { task, exited } = await mom.spawn({ host, argv });
      const name = `0x${task.toString(16).toUpperCase().padStart(8, "0")}`;
      if (wish.verbose) io.err(`pbsdsh: spawned task ${name} on ${host}\n`);
      if (wish.leave) return;
      const status = await exited;
      if (wish.verbose) io.err(`pbsdsh: task ${name} exit status ${status}\n`);
      highest = Math.max(highest, exitOf(status));
    } catch (error) {
      highest = Math.max(highest, told(io, error));
    }
  };
  if (wish.one_by_one) for (const host of hosts) await one(host);
  else await Promise.all(hosts.map(one));
  mom.close();
  return highest;
}

function told(io: CommandIo, error: unknown): number {
  if (!(error instanceof TaskRefused)) throw error;
  io.err(`pbsdsh: ${error.message}\n`);
  return 1;
}

/** Returns the host of each task, taken from the lines of the node file. If the line requested with -n does not exist, the list is empty. */
function chosen(lines: readonly string[], { copies, index }: Wish): readonly string[] {
  if (index !== null) return lines.slice(index, index + 1);
  if (copies === null || lines.length === 0) return lines;
  return Array.from({ length: copies }, (_, at) => nth(lines, at % lines.length));
}

/** Parses the arguments. Returns the message if they are wrong. */
function argumentsOf(io: CommandIo): { readonly wish: Wish; readonly argv: readonly string[] } | string {
  const scan = scanOptions(io.argv, "c:n:h:svo", false);
  const wish: Wish = { copies: null, index: null, host: null, one_by_one: false, verbose: false, leave: false };
  for (const event of scan.events) {
    const fault = optionFault("pbsdsh", event);
    if (fault !== null) return `${fault}\n`;
    if (event.kind !== "option") continue;
    const number = /^\d{1,9}$/.test(event.value) ? Number(event.value) : null;
    switch (event.letter) {
      case "c":
      case "n":
        if (number === null || (event.letter === "c" && number === 0)) return `pbsdsh: illegal -${event.letter} value\n`;
        if (event.letter === "c" && number > COPIES_MAX) return `pbsdsh: -c: at most ${COPIES_MAX} copies\n`;
        if (event.letter === "c") wish.copies = number;
        else wish.index = number;
        break;
      case "h":
        wish.host = event.value;
        break;
      case "s":
        wish.one_by_one = true;
        break;
      case "v":
        wish.verbose = true;
        break;
      case "o":
        wish.leave = true;
        break;
    }
  }
  if ([wish.copies, wish.index, wish.host].filter((each) => each !== null).length > 1)
    return "pbsdsh: -c, -n and -h options cannot be used together\n";
  return scan.operands.length === 0 ? "" : { wish, argv: scan.operands };
}
