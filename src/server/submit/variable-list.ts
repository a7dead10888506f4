// Variable_List in the stored form: the variables from qsub, then PBS_O_QUEUE and PBS_O_HOST, which only the server knows (docs/reference/files.md 6).

import { splitList } from "#model/values/string-array.ts";
import type { SubmitMemo } from "./memo.ts";

/** workdir: the directory of the submission, `/` when the client sent none. */
export type Environment = { readonly list: readonly string[]; readonly workdir: string };

export function environment(memo: SubmitMemo, text: string, queue: string, host: string): Environment {
  return memo.value(`environment\0${queue}\0${host}\0${text}`, () => {
    const given = splitList(text, true).filter((variable) => !/^PBS_O_(QUEUE|HOST)=/.test(variable));
    return { list: [...given, `PBS_O_QUEUE=${queue}`, `PBS_O_HOST=${host}`], workdir: workdirOf(given) };
  });
}

const WORKDIR = "PBS_O_WORKDIR=";

/** Directory of the submission, from a job's variables. */
export function workdirOf(variables: unknown): string {
  const list = Array.isArray(variables) ? (variables as readonly string[]) : [];
  return unescaped(list.find((variable) => variable.startsWith(WORKDIR))?.slice(WORKDIR.length) ?? "") || "/";
}

/** A backslash protects the character after it. */
const unescaped = (value: string): string => value.replace(/\\(.)/gs, "$1");
