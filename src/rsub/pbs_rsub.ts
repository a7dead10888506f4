// pbs_rsub: creates a reservation (docs/reference/commands.md 5). `-p PARTITION` assigns it to the scheduler of that partition.

import type { Command, CommandIo } from "#cli/command.ts";
import { asCommand, type Complex, mustBeOurs } from "#cli/complex.ts";
import { PBSE_UNKNODE, refusalStatus } from "#cli/errors.ts";
import { optionFault, scanOptions } from "#cli/getopt.ts";
import { escapeValue } from "#cli/qsub/variables.ts";
import { parseNamedValues } from "#cli/value-lists.ts";
import type { AttrValueText, SubmitResvRequest } from "#protocol/messages.ts";
import { nth } from "#support/assert.ts";
import { type OptionResult, readResvOption } from "./resv-options.ts";

const USAGE = `usage: pbs_rsub [-I seconds] [-m mail_points] [-M mail_list]
                [-N reservation_name] [-u user_list] [-g group_list]
                [-U auth_user_list] [-G auth_group_list] [-H auth_host_list]
                [-R start_time] [-E end_time] [-D duration] [-q destination]
                [-r rrule_expression] [-W otherattributes=value...]
                -l resource_list | --hosts host1 [... hostn]
       pbs_rsub --version
`;
/** Text that --help adds to the usage. The usage itself is that of PBS, word for word. */
const HELP = `${USAGE}
  -p partition   the scheduler of this partition alone confirms it
  --job jobid    of the vnodes that a running job has, until its walltime is over; the job goes on in it
  -W qmove=jobid as soon as possible, for a job that waits; the job moves in
  --hosts        maintenance of whole hosts, whatever runs or is reserved there (operators and managers)
  PBS_TZID       in the environment: the time zone of -r, as Europe/Berlin
`;
/** Length of the longest recurrence rule allowed. */
const RULE_CHARS_MAX = 66;
/** Default of -I for pbs_rsub -W qmove: after 10 seconds without confirmation the reservation is deleted. */
const QMOVE_WAIT_S = -10;
const USAGE_STATUS = 2;

export const run: Command = asCommand("pbs_rsub", HELP, pbsRsub);

/** What the command line asks for. fault: its fault, printed before the usage; "": only the usage is printed; null: there is no fault. */
type Asked = {
  readonly attrs: AttrValueText[];
  readonly given: Set<string>;
  readonly hosts: readonly string[] | null;
  /** the server named by -q @server */
  readonly server: string | null;
  readonly fault: string | null;
};

export async function pbsRsub(io: CommandIo, complex: Complex): Promise<number> {
  const asked = readArguments(io.argv, complex.now_ms());
  if (asked.fault !== null) {
    io.err(`${asked.fault}${USAGE}`);
    return USAGE_STATUS;
  }
  if (asked.given.has("r")) {
    const zone = io.env["PBS_TZID"];
    if (zone === undefined || zone === "") {
      io.err("pbs_rsub error: a valid PBS_TZID timezone environment variable is required.\n");
      return USAGE_STATUS;
    }
    asked.attrs.push({ name: "reserve_timezone", value: zone });
  }
  asked.attrs.push({ name: "Variable_List", value: variables(io.env) });
  await mustBeOurs(complex, asked.server);
  return submit(io, complex, { kind: "submit-resv", attrs: asked.attrs, ...(asked.hosts === null ? {} : { hosts: asked.hosts }) });
}

async function submit(io: CommandIo, complex: Complex, request: SubmitResvRequest): Promise<number> {
  const link = await complex.connect();
  try {
    const reply = await link.request(request);
    if (!reply.ok) {
      io.err(`pbs_rsub: ${reply.text ?? `Server returned error ${reply.code}`}\n`);
      // If the server does not know a host, the operands were wrong, and the exit status says so.
      return request.hosts !== undefined && reply.code === PBSE_UNKNODE ? USAGE_STATUS : refusalStatus(reply.code);
    }
    const { id, word } = reply.value as { readonly id: string; readonly word: string };
    io.out(`${id} ${word}\n`);
    return 0;
  } finally {
    link.close();
  }
}

/** Returns the environment variables that are sent with a reservation. The server adds user and host. */
function variables(env: CommandIo["env"]): string {
  const rows: readonly (readonly [string, string | undefined])[] = [
    ["PBS_O_MAIL", env["MAIL"]],
    ["PBS_TZID", env["PBS_TZID"]],
  ];
  return rows.flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${escapeValue(value)}`])).join(",");
}

function readArguments(argv: readonly string[], now_ms: number): Asked {
  const attrs: AttrValueText[] = [];
  const given = new Set<string>();
  const { words, job, hosts } = takeLongOptions(argv);
  const scan = scanOptions(words, "D:E:I:l:m:M:N:p:q:r:R:u:U:g:G:H:W:");
  let faults = "";
  let server: string | null = null;
  for (const event of scan.events) {
    const fault = optionFault("pbs_rsub", event);
    if (fault !== null) faults += `${fault}\n`;
    if (event.kind !== "option") continue;
    given.add(event.letter);
    if (event.letter === "q") server = event.value.slice(1);
    const read = readOption(event.letter, event.value, now_ms);
    if (read.ok) attrs.push(...read.attrs);
    else faults += read.text;
  }
  if (job !== null) attrs.push({ name: "reserve_job", value: job });
  const qmove = attrs.find(({ name }) => name === "qmove");
  faults ||= conflict({ attrs, given, job, hosts: hosts ? scan.operands : null });
  if (qmove !== undefined && !given.has("I")) attrs.push({ name: "interactive", value: String(QMOVE_WAIT_S) });
  const wrong = faults !== "" || argv.length === 0 || (!hosts && scan.operands.length > 0);
  return { attrs, given, hosts: hosts ? scan.operands : null, server, fault: wrong ? faults : null };
}

/**
 * Takes the options --hosts and --job from the arguments, because getopt handles only single letters. --hosts makes all operands hosts; --job takes a job id.
 */
function takeLongOptions(argv: readonly string[]): {
  readonly words: readonly string[];
  readonly job: string | null;
  readonly hosts: boolean;
} {
  const words: string[] = [];
  let [job, hosts]: [string | null, boolean] = [null, false];
  for (let at = 0; at < argv.length; at++) {
    const word = nth(argv, at);
    const equals = /^--(job|hosts)=(.*)$/s.exec(word);
    if (word === "--hosts" || equals?.[1] === "hosts") {
      hosts = true;
      if (equals !== null) words.push(nth(equals, 2));
    } else if (word === "--job") job = argv[++at] ?? "";
    else if (equals !== null) job = nth(equals, 2);
    else words.push(word);
  }
  return { words, job, hosts };
}

function readOption(letter: string, value: string, now_ms: number): OptionResult {
  const set = (name: string): OptionResult => ({ ok: true, attrs: [{ name, value }] });
  const illegal = (why: string): OptionResult => ({ ok: false, text: `pbs_rsub: illegal -${letter} value${why}\n` });
  switch (letter) {
    case "D":
      return { ok: true, attrs: [{ name: "Resource_List", resource: "walltime", value }] };
    case "p":
      return value === "" ? illegal("") : set("partition");
    case "q":
      return /^@[^@\s]+$/.test(value) ? { ok: true, attrs: [] } : illegal(': format "@server"');
    case "r":
      return value.length > RULE_CHARS_MAX ? illegal(" (expression too long)") : set("reserve_rrule");
    case "W": {
      const named = parseNamedValues(value);
      return named === null ? illegal("") : { ok: true, attrs: named };
    }
    default:
      return readResvOption("pbs_rsub", letter, value, { now_ms });
  }
}

/** Returns the message about options that exclude each other, or "". */
function conflict({ attrs, given, job, hosts }: Pick<Asked, "attrs" | "given" | "hosts"> & { readonly job: string | null }): string {
  const starts = given.has("R") || given.has("E");
  if (job !== null && (starts || given.has("D"))) return "pbs_rsub: Start/End time cannot be used with --job option\n";
  if (job === "") return "pbs_rsub: illegally formed job identifier: \n";
  if (attrs.some(({ name }) => name === "qmove")) {
    if (starts) return "pbs_rsub: -Wqmove is not compatible with -R or -E option\n";
    const wait = attrs.find(({ name }) => name === "interactive");
    if (wait !== undefined && Number(wait.value) > 0)
      return "pbs_rsub: -I <timeout> value must be negative when used with -Wqmove option.\n";
  }
  if (hosts === null) return "";
  if (given.has("I")) return "pbs_rsub: can't use -I with --hosts\n";
  if (given.has("l")) return "pbs_rsub: can't use -l with --hosts\n";
  if (hosts.length === 0 || hosts.includes("")) return "pbs_rsub: missing host(s)\n";
  const twice = hosts.find((host, at) => hosts.indexOf(host) < at);
  return twice === undefined ? "" : `pbs_rsub: Duplicate host: ${twice}\n`;
}
