// Manual pages of the programs, made from sources and docs/ when bundles are built: what a program is for stands in the first line of its source, how it is
// called in its usage, and all else in docs/reference and docs/commands.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../lib/paths.mjs";
import { PROGRAMS } from "../lib/programs.mjs";
import { document, paragraphsAbout, rowsAbout, section, withoutTitle } from "./documents.mjs";
import { formatPages, title } from "./formats.mjs";
import { partitaCalls } from "./partita-calls.mjs";
import { escapeText, roff } from "./roff.mjs";

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
const OF_ADMINISTRATORS = /^pbs_(?:server|sched|mom|comm|dataservice)$|^pbsfs$|^qmgr$/;

/** Pages of programs and of file formats, by path below share/man. */
export function manualPages() {
  const programs = PROGRAMS.filter(({ kind }) => kind !== "helper");
  return new Map([...programs.map(page), ...formatPages()]);
}

function page(program) {
  const { name } = program;
  const number = OF_ADMINISTRATORS.test(name) ? "8" : "1";
  const path = `man${number}/${name}.${number}B`;
  if (name === "rsub") return [path, ".so man1/pbs_rsub.1B\n"];
  const lines = [
    title(name, number),
    ".SH NAME",
    `${escapeText(name, true)} \\- ${escapeText(purpose(program))}`,
    ".SH SYNOPSIS",
    ".nf",
    escapeText(usage(program), true),
    ".fi",
    ".SH DESCRIPTION",
    ...description(name),
    ...statuses(program),
    ...SURROUNDINGS,
    ".SH SEE ALSO",
    escapeText(seeAlso(name, number)),
  ];
  return [path, `${lines.join("\n")}\n`];
}

const NOTHING_TOLD = "The usage above lists the options.";

/** Which part of docs/ tells about a program. */
function description(name) {
  const own = withoutTitle(document(`commands/${name}.md`));
  const told =
    (name.startsWith("grid") ? grid(name) : REFERENCE[name])?.() ??
    [
      ...rowsAbout(section(COMMANDS, 3), name).map(sentence),
      paragraphsAbout(section(COMMANDS, 6).replaceAll(". **", ".\n- **"), name),
    ].join("\n\n");
  const more = name === "qsub" ? withoutTitle(document("commands/qsub-batch.md")).replace(/^/, "### Many jobs at once: --batch\n") : "";
  const lines = [told, own, more].flatMap((markdown) => roff(markdown));
  if (name === "partita") lines.push(...partitaCalls().flatMap(callText));
  // A build does not fail because a page of docs/ is not written yet: the usage says the most important, and a test names the program.
  return lines.length === 0 ? [NOTHING_TOLD] : lines;
}

const COMMANDS = "reference/commands.md";
const started = (name) => rowsAbout(section("reference/files.md", 10), name).map(sentence).join("\n\n");
/** The commands of the grid: what holds for all of them, and the rows of their table that are about one. Their usages say the rest. */
const grid = (name) => () => {
  const [, text = ""] = document("campaigns.md").split(/^## Commands\n/m);
  const [intro, table = ""] = text.split("\n\n");
  const [head, line, ...rows] = table.split("\n");
  const own = rows.filter((row) => row.startsWith(`| \`${name}`));
  return own.length === 0 ? intro : `${intro}\n\n${[head, line, ...own].join("\n")}`;
};
const reservations = (name) => () => `${paragraphsAbout(section(COMMANDS, 5), name)}\n\n${name === "pbs_rstat" ? states() : ""}`;
const states = () => `### States\n${/^\| number[\s\S]*?\n(?=<!--)/m.exec(section(COMMANDS, 5))?.[0] ?? ""}`;

const REFERENCE = {
  qsub: () => section(COMMANDS, 1),
  qstat: () => section(COMMANDS, 2),
  pbsnodes: () => section(COMMANDS, 4),
  qmgr: () => withoutTitle(document("reference/qmgr.md")).replaceAll(/^## /gm, "### "),
  pbs_rsub: reservations("pbs_rsub"),
  pbs_rstat: reservations("pbs_rstat"),
  pbs_rdel: reservations("pbs_rdel"),
  pbs_ralter: reservations("pbs_ralter"),
  pbs_server: () => `${started("pbs_server")}\n\n${section("reference/files.md", 10).split("\n\n").slice(1).join("\n\n")}`,
  pbs_sched: () => `${started("pbs_sched")}\n\n${section("reference/scheduler.md", 1)}`,
  pbs_mom: () => `${section("reference/execution.md", 8)}\n\n${section("reference/execution.md", 1)}`,
  pbs_comm: () => started("pbs_comm"),
  partita: () =>
    "The option `--home DIR` of every call names the directory of the complex. `partita CALL --help` prints the options of a call.\n\n### Calls",
};

function callText({ command, describe, options }) {
  const told = options
    .filter(({ isOption }) => isOption)
    .flatMap(({ name, choices, describe: about }) => [
      ".TP",
      `\\fB${escapeText(`${name.length === 1 ? "-" : "--"}${name}`, true)}\\fR`,
      escapeText([choices.join(", "), about].filter((text) => text !== "").join(": ")) || "\\&",
    ]);
  const inner = told.length === 0 ? [] : [".RS", ...told, ".RE"];
  return [".TP", `\\fBpartita ${escapeText(command, true)}\\fR`, escapeText(sentence(describe)), ...inner];
}

/** The exit statuses of the PBS commands; those of daemons and of partita are simpler. */
function statuses({ kind, name }) {
  if (kind === "command" && !name.startsWith("grid")) {
    const told = /^\*\*Exit status\.\*\* (.*(?:\n(?!\n).*)*)/m.exec(section(COMMANDS, 0))?.[1] ?? "";
    return [".SH EXIT STATUS", ...roff(told)];
  }
  return [
    ".SH EXIT STATUS",
    "0 means success. Any other status means that the call failed or was refused; a message on standard error says why.",
  ];
}

const SURROUNDINGS = [
  ".SH ENVIRONMENT",
  ".TP",
  "\\fBPBS_CONF_FILE\\fR",
  "the configuration file, in place of /etc/pbs.conf",
  ".TP",
  "\\fBPBS_SERVER\\fR",
  "the server, in place of the server that the configuration file names",
  ".SH FILES",
  ".TP",
  "\\fB/etc/pbs.conf\\fR",
  "configuration of this host; see pbs.conf(5B)",
];

function seeAlso(name, number) {
  const others = ["qsub(1B)", "qstat(1B)", "partita(1B)", "qmgr(8B)", "pbs.conf(5B)", "pbs_job_attributes(7B)", "pbs_resources(7B)"];
  return others.filter((other) => other !== `${name}(${number}B)`).join(", ");
}

/** A description that begins with a small letter, as a sentence. */
function sentence(text) {
  const whole = text.trim();
  if (whole === "") return "";
  return `${/^[a-z]+ /.test(whole) ? whole.charAt(0).toUpperCase() + whole.slice(1) : whole}${/[.:]$/.test(whole) ? "" : "."}`;
}

function purpose({ name, source }) {
  if (PURPOSES[name] !== undefined) return PURPOSES[name];
  const comment = (/^(?:\/\/.*\n)+/.exec(readFileSync(join(ROOT, source), "utf8")) ?? [""])[0]
    .replaceAll(/^\/\/ ?/gm, "")
    .replaceAll("\n", " ");
  const said = comment.startsWith(`${name}: `) ? comment.slice(name.length + 2) : comment;
  return said.replace(/ \((?:pbs|docs)\/.*$/, "").replace(/\. .*$|\.?\s*$/, "");
}

/** Files with usages that are not in the source of the program itself. */
const USAGE_FILES = {
  pbs_server: "src/server/core/options.ts",
  pbs_mom: "src/mom/config/options.ts",
  pbs_sched: "src/sched/shell/options.ts",
  pbs_comm: "src/comm/options.ts",
  qsub: "src/cli/qsub/job.ts",
  qstat: "src/cli/qstat/arguments.ts",
  pbsnodes: "src/cli/pbsnodes/arguments.ts",
  ...Object.fromEntries(["qhold", "qrls"].map((name) => [name, "src/cli/holds.ts"])),
  ...Object.fromEntries(["qstart", "qstop", "qenable", "qdisable"].map((name) => [name, "src/cli/queue-switch.ts"])),
};
const USAGE = /\b\w*(?:USAGE|[uU]sage)\w*(?:: \w+)? =\s*(?:\(\w+: string\): string =>\s*)?(?:`([^`]*)`|"((?:[^"\\]|\\.)*)")/;
const SEVERAL_USAGES = /\bUSAGES\b[^{]*= \{([^}]*)\}/;

/** The usage in the program's source or in the file of its options. */
function usage({ name, source }) {
  if (name === "partita") return "partita CALL [option ...] [operand ...]\npartita [CALL] --help";
  const text = readFileSync(join(ROOT, USAGE_FILES[name] ?? source), "utf8");
  const several = SEVERAL_USAGES.exec(text)?.[1].matchAll(/: "(.*?)\\n"/g);
  const found = USAGE.exec(text);
  const raw =
    several !== undefined ? [...several].map(([, line]) => line).join("\n") : (found?.[1] ?? (found?.[2] && JSON.parse(`"${found[2]}"`)));
  const told = raw
    ?.replaceAll(/\$\{(?:command|name)\}/g, name)
    .replaceAll("\\n", "\n")
    .replaceAll("\\t", "\t")
    .replaceAll("\t", "    ");
  if (told?.includes(name) !== true) return `${name} [option ...] [operand ...]\n${name} --help`;
  // What is beyond the first interpolated text is explanation.
  return told
    .split("${")[0]
    .replace(/\n.*=\s*$/, "")
    .replace(/^(?:usage|Usage|USAGE): */gm, "")
    .trim();
}
