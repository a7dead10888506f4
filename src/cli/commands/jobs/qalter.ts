// qalter: changes attributes of jobs (docs/reference/commands.md 3).

import type { AttrOp } from "#protocol/messages.ts";
import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex } from "../../complex.ts";
import { optionFault, scanOptions } from "../../getopt.ts";
import { isHoldList } from "../../holds.ts";
import { type JobOptionWorld, keywordAttribute, readJobOption, readKeywords } from "../../job-options.ts";
import { requestForJobs } from "../../job-requests.ts";
import { JOB_OPTION_LETTERS } from "../../option-letters.ts";
import { outputPathOf } from "../../output-paths.ts";
import { completeDependencies } from "../../value-lists.ts";

const USAGE = `usage: qalter [-a date_time] [-A account_string] [-c interval] [-e path]
	[-h hold_list] [-j y|n] [-k keep] [-l resource_list]
	[-m mail_options] [-M user_list] [-N jobname] [-o path] [-p priority]
	[-R o|e|oe] [-r y|n] [-S path] [-u user_list] [-W dependency_list]
	[-P project_name] job_identifier...
       qalter --version
`;

export const run: Command = asCommand("qalter", USAGE, qalter);

type AttrText = { readonly name: string; readonly resource?: string; readonly value: string };

export async function qalter(io: CommandIo, complex: Complex): Promise<number> {
  const scan = scanOptions(io.argv, `${JOB_OPTION_LETTERS}h:W:`);
  const world: JobOptionWorld = { command: "qalter", now_ms: complex.now_ms(), outputPath: (text) => outputPathOf(io, complex)(text) };
  const attrs = new Map<string, AttrOp>();
  let faults = "";
  for (const event of scan.events) {
    const fault = optionFault("qalter", event);
    if (fault !== null) faults += `${fault}\n`;
    if (event.kind !== "option") continue;
    const result = readOption(event.letter, event.value, world, complex);
    if (typeof result === "string") faults += result;
    else for (const attr of result) attrs.set(`${attr.name}.${attr.resource ?? ""}`, { ...attr, op: "=" });
  }
  if (faults !== "" || scan.operands.length === 0) {
    io.err(faults + USAGE);
    return 2;
  }
  const changes = [...attrs.values()];
  return requestForJobs(io, complex, {
    command: "qalter",
    operands: scan.operands,
    request: (job) => ({ kind: "modify-job", job, attrs: changes }),
  });
}

/** Returns the attributes that an option sets, or the message about its fault. */
function readOption(letter: string, value: string, world: JobOptionWorld, complex: Complex): readonly AttrText[] | string {
  if (letter === "h") return isHoldList(value) ? [{ name: "Hold_Types", value }] : "qalter: illegal -h value\n";
  if (letter !== "W") {
    const result = readJobOption(letter, value, world);
    return result.ok ? result.attrs : result.text;
  }
  const illegal = "qalter: illegal -W value\n";
  const attrs: AttrText[] = [];
  for (const keyword of readKeywords(value) ?? [null]) {
    if (keyword === null) return illegal;
    if (keyword.name === "depend") {
      const depend = completeDependencies(keyword.value, complex.conf().server);
      if (depend === null) return illegal;
      attrs.push({ name: "depend", value: depend });
    } else attrs.push(keywordAttribute(keyword));
  }
  return attrs;
}
