// Reads the attributes of a backend object of type gridengine. Pure.

import { parseBackendOptions } from "#model/request/backend-options.ts";
import { BackendError } from "../contract/fault.ts";
import { type BackendSettings, numberSetting, textSetting, timeoutOf } from "../contract/settings.ts";

export type GridEngineOptions = {
  readonly bin: string;
  /** the environment of the programs: SGE_ROOT, SGE_CELL, SGE_CLUSTER_NAME */
  readonly env: Readonly<Record<string, string>>;
  /** a file with further variables, such as ports */
  readonly config: string | null;
  readonly name_prefix: string;
  readonly queue: string | null;
  readonly project: string | null;
  readonly output_dir: string | null;
  readonly timeout_ms: number;
  readonly default_prio: number | null;
  readonly cpu_resource: string | null;
  readonly mem_resource: string | null;
  readonly tmp_resource: string | null;
  readonly parallel_env: string | null;
};

export function gridEngineOptions({ attributes }: BackendSettings): GridEngineOptions {
  const cell = textSetting(attributes, "cell");
  const cluster = textSetting(attributes, "cluster");
  const own = parseBackendOptions("gridengine", textSetting(attributes, "backend_opts") ?? "")["p"];
  return {
    bin: required(textSetting(attributes, "bin"), "bin"),
    env: {
      SGE_ROOT: required(textSetting(attributes, "root"), "root"),
      ...(cell === null ? {} : { SGE_CELL: cell }),
      ...(cluster === null ? {} : { SGE_CLUSTER_NAME: cluster }),
    },
    config: textSetting(attributes, "config"),
    name_prefix: nameOf(textSetting(attributes, "repo_key") ?? ""),
    queue: textSetting(attributes, "remote_queue"),
    project: textSetting(attributes, "account"),
    output_dir: textSetting(attributes, "output_dir"),
    timeout_ms: timeoutOf(attributes),
    default_prio: own === undefined ? numberSetting(attributes, "default_prio") : Number(own),
    cpu_resource: textSetting(attributes, "cpu_resource"),
    mem_resource: textSetting(attributes, "mem_resource"),
    tmp_resource: textSetting(attributes, "tmp_resource"),
    parallel_env: textSetting(attributes, "parallel_env"),
  };
}

function required(value: string | null, name: string): string {
  if (value !== null) return value;
  throw new BackendError({ kind: "configuration", text: `a backend of type gridengine needs the attribute ${name}` });
}

/** Characters that Grid Engine refuses in names, and the similar characters that replace them. */
const ALIKE: Readonly<Record<string, string>> = { "/": "|", "\\": "|", ":": ";", "@": "a", "*": "#", "?": "!" };

export const nameOf = (text: string): string => text.replace(/[/\\:@*?]/g, (each) => ALIKE[each] ?? each);
