// What the words of each command's line can be: the one table that the completions of all shells are made from.
//
// letters: the options, as getopt takes them. long: further options. values: what follows an option; operands: what the other words are. A kind is one that
// names the server's objects (`@job`: KINDS), one that the shell itself knows (`@file`, `@directory`, `@user`, `@host`, `@command`), or a list of words.

import { partitaCalls } from "../manual/partita-calls.mjs";

/** Commands that print the names of each kind of object, one in a line. They are run with a time limit, and what they say on standard error is dropped. */
export const KINDS = {
  job: "qselect",
  queue: "qstat -Q -f -F dsv | sed -n 's/^Queue: \\([^|]*\\)|.*/\\1/p'",
  node: "pbsnodes -av -F dsv | sed -n 's/^Name=\\([^|]*\\)|.*/\\1/p'",
  resv: "pbs_rstat -B | sed -n 's/^Resv ID: //p'",
  sched: "qmgr -c 'list sched' | sed -n 's/^Sched //p'",
  campaign: "gridstat -F json | sed -n 's/^ *\"id\": *\\([0-9][0-9]*\\),*$/\\1/p'",
};
/** How long the server may take for its names. */
export const NAMES_LIMIT_S = 2;

const OF_JOBS = {
  c: "n s c w",
  e: "@file",
  j: "oe eo n",
  k: "o e oe d n",
  l: "select= place= walltime= ncpus= mem=",
  m: "n a b e abe",
  o: "@file",
  r: "y n",
  R: "o e oe",
  S: "@file",
  u: "@user",
  M: "@user",
};
const JOB_LETTERS = "a:A:c:e:j:k:l:m:M:N:o:p:P:r:R:S:u:";
const FORMATS = { F: "json dsv" };
const queues = { letters: "", operands: "@queue" };
const campaigns = { letters: "", operands: "@campaign" };
const holds = { letters: "h:", values: { h: "u o s n" }, operands: "@job" };
const COMMANDS = {
  qsub: {
    letters: `${JOB_LETTERS}C:fhIJ:q:v:VW:Xz`,
    long: ["--batch", "--batch-format"],
    values: {
      ...OF_JOBS,
      q: "@queue",
      W: "depend= stagein= stageout= group_list= umask= block=true sandbox=",
      "--batch": "@file",
      "--batch-format": "wr",
    },
    operands: "@file",
  },
  qalter: {
    letters: `${JOB_LETTERS}h:W:`,
    values: { ...OF_JOBS, h: "u o s n", W: "depend= stagein= stageout= group_list= umask=" },
    operands: "@job",
  },
  qstat: { letters: "ainpqrstwxu:fGHJMQEBW:T1F:D:", values: { ...FORMATS, u: "@user" }, operands: "@job @queue" },
  qselect: {
    letters: "a:A:c:h:HJl:N:p:q:r:s:t:TP:xu:",
    values: { h: "u o s n", q: "@queue", r: "y n", u: "@user", s: "B E F H Q R S T U W X" },
  },
  qdel: { letters: "W:x", values: { W: "force suppress_email= dead" }, operands: "@job" },
  qhold: holds,
  qrls: holds,
  qmove: { letters: "", first: "@queue", operands: "@job" },
  qorder: { letters: "", operands: "@job" },
  qmsg: { letters: "EO", operands: "@job" },
  qsig: {
    letters: "s:",
    values: { s: "HUP INT TERM KILL STOP CONT USR1 USR2 suspend resume admin-suspend admin-resume" },
    operands: "@job",
  },
  qrerun: { letters: "W:", values: { W: "force" }, operands: "@job" },
  qrun: { letters: "aH:", values: { H: "@node" }, operands: "@job" },
  qstart: queues,
  qstop: queues,
  qenable: queues,
  qdisable: queues,
  qterm: { letters: "t:msfFi", values: { t: "quick delay immediate" } },
  qmgr: { letters: "ac:enz", long: ["--plain"] },
  pbsnodes: { letters: "aC:cD:F:HjLlors:Sv", values: FORMATS, operands: "@node" },
  pbs_hostn: { letters: "v", operands: "@host" },
  tracejob: {
    letters: "amslvzw:p:n:f:c:",
    values: { p: "@directory", f: "error system admin job job_usage security sched debug debug2 resv" },
    operands: "@job",
  },
  printjob: { letters: "as", operands: "@job @file" },
  pbsfs: { letters: "ptdegscI:", values: { I: "@sched" } },
  pbs_dataservice: { letters: "", first: "start stop status" },
  pbsdsh: { letters: "c:n:h:svo", values: { h: "@node" }, operands: "@command" },
  pbs_tmrsh: { letters: "", first: "@node", operands: "@command" },
  pbs_attach: { letters: "j:m:p:Ps", values: { j: "@job" }, operands: "@command" },
  pbs_release_nodes: { letters: "j:k:a", values: { j: "@job" }, operands: "@node" },
  pbs_rsub: {
    letters: "D:E:I:l:m:M:N:p:q:r:R:u:U:g:G:H:W:",
    long: ["--hosts", "--job"],
    values: {
      l: "select= place= walltime=",
      m: "n a b e c",
      q: "@queue",
      u: "@user",
      U: "@user",
      W: "qmove=",
      "--job": "@job",
      "--hosts": "@node",
    },
  },
  pbs_rstat: { letters: "fFBS", operands: "@resv" },
  pbs_ralter: { letters: "D:E:I:l:m:M:N:R:U:G:W:", values: { l: "select=", m: "n a b e c", U: "@user", W: "force" }, operands: "@resv" },
  pbs_rdel: { letters: "q:", values: { q: "@queue" }, operands: "@resv" },
  gridsub: { letters: "t:F:f:j:c:", values: { t: "test default", F: "json", f: "@file", c: "@campaign" }, operands: "@file" },
  gridstat: { letters: "uF:fJ", values: { F: "json" }, operands: "@campaign" },
  griddel: { letters: "pr", operands: "@campaign" },
  gridhold: campaigns,
  gridrls: campaigns,
  gridevents: { letters: "aF:c:fre:", values: { F: "json", c: "@campaign" }, operands: "@campaign" },
  gridnotify: { letters: "m:w:s:uF:", values: { F: "json", s: "low medium high" } },
  gridclusters: {
    letters: "bF:",
    long: ["--add", "--type", "--remove", "--disable", "--enable", "--conf", "--partition", "--queue", "--bin", "--url"].concat([
      "--credentials",
      "--option",
      "--resources",
      "--users",
      "--mapping",
    ]),
    values: { F: "json", "--type": "partita pbs slurm gridengine oar", "--conf": "@file", "--bin": "@directory", "--credentials": "@file" },
  },
};

/** [{ name, options, values: { "-q": kind }, first, operands }]; a call of partita has the name "partita CALL". */
export function completions() {
  const commands = Object.entries({ ...COMMANDS, rsub: COMMANDS.pbs_rsub }).map(
    ([name, { letters, long = [], values = {}, first = "", operands = "" }]) => ({
      name,
      options: [...letters.replaceAll(":", "")].map((letter) => `-${letter}`).concat(long, "--help", "--version"),
      values: {
        ...Object.fromEntries([...letters.matchAll(/(.):/g)].map(([, letter]) => [`-${letter}`, values[letter] ?? ""])),
        ...Object.fromEntries(Object.entries(values).filter(([option]) => option.startsWith("--"))),
      },
      first,
      operands,
    }),
  );
  return [...commands, ...ofPartita()];
}

/** partita itself, its calls, and the verbs of its calls. */
function ofPartita() {
  const calls = partitaCalls();
  const named = calls.map(({ command, options }) => {
    const words = command.split(" ");
    const path = words.filter((word) => !/^[<[]/.test(word)).join(" ");
    const taken = words.find((word) => /^[<[]/.test(word))?.replaceAll(/[<>[\].]/g, "") ?? "";
    const own = options
      .filter(({ isOption }) => isOption)
      .map((option) => ({ ...option, name: `${option.name.length === 1 ? "-" : "--"}${option.name}` }));
    const verbs = calls.map((call) => call.command.split(" ")).filter(([outer, verb]) => outer === path && /^[a-z]/.test(verb ?? ""));
    const choices = options.find(({ isOption, name }) => !isOption && name === taken)?.choices ?? [];
    return {
      name: `partita ${path}`,
      options: [...own.map(({ name }) => name), "--home", "--help"],
      values: {
        ...Object.fromEntries(
          own.filter(({ takesValue }) => takesValue).map(({ name, choices: words }) => [name, words.join(" ") || OF_CALLS[name] || ""]),
        ),
        "--home": "@directory",
      },
      first: verbs.map(([, verb]) => verb).join(" "),
      operands: choices.join(" ") || OF_CALLS[taken] || "",
    };
  });
  const first = [...new Set(calls.map(({ command }) => command.split(" ")[0]))].join(" ");
  return [
    { name: "partita", options: ["--home", "--help", "--version"], values: { "--home": "@directory" }, first, operands: "" },
    ...named,
  ];
}

const OF_CALLS = {
  job: "@job",
  file: "@file",
  script: "@file",
  trace: "@file",
  server: "@host",
  host: "@node",
  "--dump": "@file",
  "--accounting": "@directory",
  "--prefix": "@directory",
  "--user": "@user",
};
