// Short manual pages, made from the sources when bundles are built: what a program is for stands in the first line of its source, how it is called in its usage.
// The rest is said by `NAME --help` and docs/.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ROOT } from "./paths.mjs";
import { PROGRAMS } from "./programs.mjs";

/** Purposes of programs whose source does not state them briefly in its first line. */
const PURPOSES = {
  partita: "makes, starts, stops and looks after a PBS complex",
  qmgr: "the administrator's shell: creates, changes, shows and deletes servers, queues, vnodes, schedulers, resources and hooks",
  pbs_server: "the batch server: keeps jobs, queues and vnodes",
  pbs_sched: "a scheduler: decides when and where the jobs of its partitions run",
  pbs_mom: "runs jobs on a host",
  pbs_comm: "stands in for the communication daemon that site tools look for",
  pbs_rsub: "asks for a reservation",
  pbs_rstat: "shows reservations",
  pbs_rdel: "deletes reservations",
  pbs_ralter: "changes reservations",
};
const BY_ADMINISTRATORS =
  /^(?:pbs_(?:server|sched|mom|comm|dataservice|probe)|pbsfs|partita|qmgr|qterm|pbsnodes|printjob|tracejob|q(?:en|dis)able|qst(?:art|op)|qrun)$/;
const OF_ADMINISTRATORS = /^pbs_(?:server|sched|mom|comm|dataservice)$|^pbsfs$|^qmgr$/;

/** Texts by path below share/man. */
export function manualPages() {
  return new Map(PROGRAMS.filter(({ kind }) => kind !== "helper").map((program) => page(program)));
}

function page(program) {
  const { name } = program;
  const section = OF_ADMINISTRATORS.test(name) ? "8" : "1";
  const lines = [
    `.TH ${name.toUpperCase()} ${section}B "" "Partita" "PBS"`,
    ".SH NAME",
    `${name} \\- ${plain(purpose(program))}`,
    ".SH SYNOPSIS",
    ".nf",
    plain(usage(program)),
    ".fi",
    ".SH DESCRIPTION",
    `.B ${name} --help`,
    "prints how the program is called. It does what the program of this name does in PBS; what differs is told in docs/ of Partita.",
    ...(BY_ADMINISTRATORS.test(name)
      ? ["Configuration: /etc/pbs.conf, or the file that the environment variable PBS_CONF_FILE names."]
      : []),
    ".SH SEE ALSO",
    "qsub(1B), qstat(1B), partita(1B), qmgr(8B), pbs_server(8B), pbs_sched(8B), pbs_mom(8B)",
  ];
  return [`man${section}/${name}.${section}B`, `${lines.join("\n")}\n`];
}

/** Roff takes a backslash, and a dot or quote at the beginning of a line, for its own. */
const plain = (text) =>
  text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replace(/^([.'])/gm, "\\&$1");

function purpose({ name, source }) {
  if (PURPOSES[name] !== undefined) return PURPOSES[name];
  const comment = (/^(?:\/\/.*\n)+/.exec(readFileSync(join(ROOT, source), "utf8")) ?? [""])[0]
    .replaceAll(/^\/\/ ?/gm, "")
    .replaceAll("\n", " ");
  const said = comment.startsWith(`${name}: `) ? comment.slice(name.length + 2) : comment;
  return said.replace(/ \((?:pbs|docs)\/.*$/, "").replace(/\. .*$|\.?\s*$/, "");
}

const USAGE = /\b(?:[A-Z]*_)?USAGE\w*(?:: \w+)? =\s*(?:`([^`$]*)`|"((?:[^"\\]|\\.)*)")/;

/** The usage in the program's source or in the files where it keeps its options. */
function usage({ name, source }) {
  const folder = dirname(source);
  const places = [source, join(folder, "options.ts"), join(folder, "..", name, "arguments.ts"), join(folder, "..", name, "draft.ts")];
  for (const place of places) {
    const path = join(ROOT, place);
    const found = existsSync(path) ? USAGE.exec(readFileSync(path, "utf8")) : null;
    const text = found === null ? "" : (found[1] ?? JSON.parse(`"${found[2]}"`)).trimEnd();
    // In a folder with several programs, only the usage that names this program counts.
    if (text.includes(name)) return text.replaceAll("\t", "    ");
  }
  return `${name} [option ...] [operand ...]\n${name} --help`;
}
