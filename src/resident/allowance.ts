// Decides which commands the resident runs, and gives the reason why others need a process of their own. Pure.

import { scanOptions } from "#cli/getopt.ts";
import { QSUB_LETTERS } from "#cli/option-letters.ts";
import type { CommandRequest } from "./request.ts";

/** Decides about the requests for one command. Returns null if the resident runs the command, otherwise the reason why not. */
type Rule = (request: CommandRequest) => string | null;

const always: Rule = () => null;
const never =
  (reason: string): Rule =>
  () =>
    reason;

/** The rule for each command of scripts/lib/programs.mjs. A test checks that none is missing. */
export const RULES: Readonly<Record<string, Rule>> = {
  qsub: ({ argv }) => {
    if (argv.includes("--batch")) return "so many jobs would keep other commands waiting, and a start is nothing against them";
    const { events } = scanOptions(argv, QSUB_LETTERS);
    for (const event of events) {
      if (event.kind !== "option") continue;
      if (event.letter === "I" || event.letter === "X") return "the job is used at the terminal of the command";
      if (event.letter === "W" && /\bblock\s*=/.test(event.value)) return "it waits as long as its job takes";
    }
    return null;
  },
  qmgr: (request) => {
    const { events } = scanOptions(
      request.argv.filter((word) => word !== "--plain"),
      "ac:enz",
    );
    const command = events.find((event) => event.kind === "option" && event.letter === "c");
    return command === undefined && request.stdin_is_tty ? "it is typed at: line editing and the admin shell need the terminal" : null;
  },
  gridsub: never("it may read large files"),
  gridstat: ({ argv }) => (argv.includes("--live") ? "it shows campaigns until they have ended" : null),
  griddel: always,
  gridhold: always,
  gridrls: always,
  gridevents: always,
  gridclusters: always,
  gridnotify: always,
  qstat: always,
  qdel: always,
  qalter: always,
  qhold: always,
  qrls: always,
  qmove: always,
  qorder: always,
  qmsg: always,
  qsig: always,
  qrerun: always,
  qrun: always,
  qselect: always,
  qstart: always,
  qstop: always,
  qenable: always,
  qdisable: always,
  qterm: always,
  pbsnodes: always,
  pbs_release_nodes: always,
  printjob: always,
  pbs_rsub: always,
  rsub: always,
  pbs_rstat: always,
  pbs_rdel: always,
  pbs_ralter: always,
  tracejob: never("it reads whole log files without a pause"),
  pbs_hostn: never("it shows what the name service tells a new process"),
  pbs_dataservice: never("it is called seldom, by scripts of administrators"),
  pbsfs: never("it works on whole files of a scheduler without a pause"),
  pbsdsh: never("its tasks belong to the job it is called in"),
  pbs_tmrsh: never("its task belongs to the job it is called in"),
  pbs_attach: never("it is about its own process"),
};

/** Variables whose values are paths of files. In the resident, a relative path would be taken relative to the resident's own directory. */
const PATH_VARIABLES = ["PBS_CONF_FILE", "PBS_HOME", "PBS_EXEC", "PBS_MOM_HOME", "PBS_TMPDIR"];
/** Paths that mean a different file in each process. */
const OF_THE_PROCESS = /\/dev\/(?:fd|stdin|stdout|stderr|tty|pts)\b|\/proc\//;

/** Returns the reason why the command needs a process of its own, or null if the resident may run it. */
export function whyOwnProcess(request: CommandRequest): string | null {
  const { program, argv, cwd, env } = request;
  const rule = Object.hasOwn(RULES, program) ? RULES[program] : undefined;
  if (rule === undefined) return "no command of ours";
  for (const name of PATH_VARIABLES) {
    const path = env[name] ?? "";
    if (path !== "" && !path.startsWith("/")) return `${name} counts from the directory of the process`;
  }
  if ([cwd, env["PBS_CONF_FILE"] ?? "", ...argv].some((text) => OF_THE_PROCESS.test(`${text}/`)))
    return "it names files that are different for every process";
  return rule(request);
}
