// The script that a cluster runs for each job of a batch. Pure.
//
// J1. Every text of a job is quoted, so that the shell interprets no part of it.
// J2. The program replaces the shell (exec), so that the exit code and the signals of the program are those of the job.

import type { JobText } from "./cluster.ts";
import { nameOf, quoted } from "./script.ts";

export type JobScriptParts = {
  readonly jobs: readonly JobText[];
  /** the index of this job (0 to count - 1) as an arithmetic expression of the shell, such as `SGE_TASK_ID - 1` */
  readonly index: string;
  /** lines of the shell that set CIGRI_NODE_FILE, with the cluster's own variables */
  readonly node_file: readonly string[];
};

/** Returns the script. It begins with the lines that all jobs need, and then has one branch for each job. Variables and a directory that all jobs share are written once. */
export function jobScript({ jobs, index, node_file }: JobScriptParts): string {
  const shared = sharedEnv(jobs);
  return [
    "#!/bin/sh",
    ...[...shared].map(([name, value]) => `export ${nameOf(name)}=${quoted(value)}`),
    ...node_file,
    "export CIGRI_NODE_FILE",
    'export CIGRI_NODEFILE="$CIGRI_NODE_FILE"',
    "partita_in() {",
    '  cd -- "$1" || { echo "the directory of the job cannot be used" >&2; exit 127; }',
    "}",
    `case $((${index})) in`,
    ...jobs.flatMap((job, at) => [`${at})`, ...branch(job, shared), ";;"]),
    "esac",
    'echo "the job has an index that its batch does not have" >&2',
    "exit 127",
    "",
  ].join("\n");
}

function sharedEnv(jobs: readonly JobText[]): ReadonlyMap<string, string> {
  const [first, ...others] = jobs;
  return new Map(Object.entries(first?.env ?? {}).filter(([name, value]) => others.every(({ env }) => env[name] === value)));
}

function branch({ env, directory, exec, parameters, output }: JobText, shared: ReadonlyMap<string, string>): string[] {
  const own = Object.entries(env).filter(([name]) => !shared.has(name));
  const work = [`partita_in ${directoryWord(directory)}`, 'export CIGRI_WORKDIR="$PWD" CIGRI_WORKING_DIRECTORY="$PWD"'];
  const files = output === null ? [] : [`[ -w . ] && exec >${quoted(output.out)} 2>${quoted(output.err)}`];
  return [
    ...own.map(([name, value]) => `export ${nameOf(name)}=${quoted(value)}`),
    ...work,
    ...files,
    `exec ${[...exec.map(homeWord), ...parameters.map(quoted)].join(" ")}`,
  ];
}

/** Quotes the name of a directory. `$HOME` alone also means the home directory. */
const directoryWord = (text: string): string => (text === "$HOME" ? '"$HOME"' : homeWord(text));

/** Quotes a text. `~` at its beginning and `{HOME}` anywhere become the home directory of the host where the job runs. */
function homeWord(text: string): string {
  const begun = text === "~" || text.startsWith("~/") ? `{HOME}${text.slice(1)}` : text;
  return begun.split("{HOME}").map(quoted).join('"$HOME"');
}
