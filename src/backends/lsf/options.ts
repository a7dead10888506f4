// Reads the attributes of a backend object of type lsf. Pure.

import { parseBackendOptions } from "#model/request/backend-options.ts";
import { type BackendSettings, textSetting, timeoutOf } from "../contract/settings.ts";

export type LsfOptions = {
  readonly bin: string | null;
  /** LSF_ENVDIR: the directory of lsf.conf */
  readonly envdir: string | null;
  /** a file with further variables, such as those of profile.lsf */
  readonly config: string | null;
  readonly name_prefix: string;
  readonly queue: string | null;
  readonly project: string | null;
  readonly output_dir: string | null;
  readonly timeout_ms: number;
  readonly mem_resource: string;
  readonly tmp_resource: string;
  readonly options: Readonly<Record<string, string>>;
};

export function lsfOptions({ attributes }: BackendSettings): LsfOptions {
  return {
    bin: textSetting(attributes, "bin"),
    envdir: textSetting(attributes, "root"),
    config: textSetting(attributes, "config"),
    // Square brackets and % have a meaning in names of LSF; the check of repo_key allows neither.
    name_prefix: textSetting(attributes, "repo_key") ?? "",
    queue: textSetting(attributes, "remote_queue"),
    project: textSetting(attributes, "account"),
    output_dir: textSetting(attributes, "output_dir"),
    timeout_ms: timeoutOf(attributes),
    mem_resource: textSetting(attributes, "mem_resource") ?? "mem",
    tmp_resource: textSetting(attributes, "tmp_resource") ?? "tmp",
    options: parseBackendOptions("lsf", textSetting(attributes, "backend_opts") ?? ""),
  };
}
