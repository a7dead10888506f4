// Reads the attributes of a backend object of type pbs. Pure.

import { parseBackendOptions } from "#model/request/backend-options.ts";
import { type BackendSettings, textSetting, timeoutOf } from "../contract/settings.ts";

export type PbsOptions = {
  readonly bin: string | null;
  /** PBS_CONF_FILE */
  readonly config: string | null;
  /** PBS_SERVER and PBS_DEFAULT: the server of the other complex */
  readonly server: string | null;
  readonly name_prefix: string;
  readonly queue: string | null;
  readonly account: string | null;
  readonly output_dir: string | null;
  readonly timeout_ms: number;
  readonly cpu_resource: string;
  readonly mem_resource: string;
  readonly tmp_resource: string | null;
  readonly options: Readonly<Record<string, string>>;
};

export function pbsOptions({ attributes }: BackendSettings): PbsOptions {
  return {
    bin: textSetting(attributes, "bin"),
    config: textSetting(attributes, "config"),
    server: textSetting(attributes, "cluster"),
    name_prefix: nameOf(textSetting(attributes, "repo_key") ?? ""),
    queue: textSetting(attributes, "remote_queue"),
    account: textSetting(attributes, "account"),
    output_dir: textSetting(attributes, "output_dir"),
    timeout_ms: timeoutOf(attributes),
    cpu_resource: textSetting(attributes, "cpu_resource") ?? "ncpus",
    mem_resource: textSetting(attributes, "mem_resource") ?? "mem",
    tmp_resource: textSetting(attributes, "tmp_resource"),
    options: parseBackendOptions("pbs", textSetting(attributes, "backend_opts") ?? ""),
  };
}

/** Job names of PBS have letters, digits, `_`, `-`, `.` and `+` only. */
const nameOf = (text: string): string => text.replace(/[^A-Za-z0-9_.+-]/g, "_");

/** Returns the environment of the PBS programs. */
export function pbsEnv({ config, server }: PbsOptions): Readonly<Record<string, string>> {
  return { ...(config === null ? {} : { PBS_CONF_FILE: config }), ...(server === null ? {} : { PBS_SERVER: server, PBS_DEFAULT: server }) };
}
