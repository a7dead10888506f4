// Lines of a batch in the form of wr (qsub --batch-format wr, docs/commands/qsub-batch.md): a command, or a command, a tab and JSON, or JSON alone. Each is converted to the
// options of qsub and a command. Pure.
//
// W1. A field that has no counterpart here is refused by its name, unless it has a value that means nothing. Nothing is ignored silently.
// W2. Fields that are not given have the defaults of wr: 1 GB, one hour, one cpu, three retries.

import { escapeValue } from "./variables.ts";

/** What a line asks for: words for qsub before `--`, and the command after it. assumed: options for fields that the line does not give, which options of the call replace. */
export type WrJob = { readonly assumed: readonly string[]; readonly args: readonly string[]; readonly command: readonly string[] };

/** Says why a line is refused. */
export class WrLineError extends Error {
  override readonly name = "WrLineError";
}

type Value = unknown;
/** What a field adds to the options of qsub. chunk: an amount of the chunk. */
type Part = { readonly args?: readonly string[]; readonly chunk?: string };

const NOTHING: Part = {};
const refuse = (field: string, why: string): never => {
  throw new WrLineError(`field ${JSON.stringify(field)}: ${why}`);
};
const text = (field: string, value: Value): string => (typeof value === "string" ? value : refuse(field, "must be a text"));

const SIZE = /^([0-9]{1,12})([KMGT]?)B?$/i;
const PIECE = /([0-9]{1,9}(?:\.[0-9]{1,3})?)(h|m|s)/gy;
const UNIT_S: Readonly<Record<string, number>> = { h: 3600, m: 60, s: 1 };

/** Seconds of a time as `90m`, `1h30m` or `45s`. */
function seconds(field: string, value: Value): number {
  const given = text(field, value);
  const pieces = [...given.matchAll(PIECE)];
  if (given === "" || pieces.reduce((length, [piece]) => length + piece.length, 0) !== given.length)
    return refuse(field, `${JSON.stringify(given)} is no time like 30m or 1h30m`);
  return Math.ceil(pieces.reduce((sum, [, amount = "0", unit = ""]) => sum + Number(amount) * (UNIT_S[unit] ?? 0), 0));
}

function whole(field: string, value: Value, least: number, most: number): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most) return value;
  return refuse(field, `must be a whole number from ${least} to ${most}`);
}

/** Whether a value means the same as no value. */
const isEmpty = (value: Value): boolean =>
  value === null || value === false || value === "" || value === 0 || (Array.isArray(value) && value.length === 0);

const OVERRIDES: Readonly<Record<string, string>> = {
  "0": "no",
  "1": "higher",
  "2": "always",
  no: "no",
  higher: "higher",
  always: "always",
};

/** An element of -W as one word. Quotes protect commas. */
function keyword(field: string, name: string, value: string): readonly string[] {
  if (!value.includes(",")) return ["-W", `${name}=${value}`];
  if (value.includes('"')) return refuse(field, "cannot contain both a comma and a double quote");
  return ["-W", `${name}="${value}"`];
}

const FIELDS: Readonly<Record<string, (field: string, value: Value) => Part>> = {
  memory: (field, value) => {
    const [, amount, unit = ""] = SIZE.exec(text(field, value)) ?? refuse(field, "must be a size like 500M or 2G");
    return { chunk: `mem=${amount}${unit === "" ? "mb" : `${unit.toLowerCase()}b`}` };
  },
  time: (field, value) => ({ args: ["-l", `walltime=${seconds(field, value)}`] }),
  cpus: (field, value) => ({ chunk: `ncpus=${whole(field, value, 0, 1_000_000)}` }),
  disk: (field, value) => (isEmpty(value) ? NOTHING : { chunk: `tmp=${whole(field, value, 1, 1_000_000)}gb` }),
  override: (field, value) => {
    const word = OVERRIDES[String(value)] ?? refuse(field, "must be 0 (no), 1 (higher) or 2 (always)");
    return { args: ["-W", `override=${word}`] };
  },
  queue: (field, value) =>
    isEmpty(value)
      ? NOTHING
      : text(field, value).includes(",")
        ? refuse(field, "a job has one queue here")
        : { args: ["-q", text(field, value)] },
  misc: (field, value) => (isEmpty(value) ? NOTHING : { args: keyword(field, "backend_opts", text(field, value)) }),
  priority: (field, value) => ({ args: ["-p", String(whole(field, value, 0, 255))] }),
  retries: (field, value) => ({ args: ["-W", `retries=${whole(field, value, 0, 100)}`] }),
  rep_grp: (field, value) => (isEmpty(value) ? NOTHING : { args: ["-P", text(field, value)] }),
  req_grp: (field, value) => (isEmpty(value) ? NOTHING : { args: keyword(field, "estgroup", text(field, value)) }),
  group: (field, value) => (isEmpty(value) ? NOTHING : { args: ["-W", `group_list=${text(field, value)}`] }),
  cloud_flavor: (field, value) => (isEmpty(value) ? NOTHING : { args: keyword(field, "backend_opts", `--flavor=${text(field, value)}`) }),
  env: (field, value) => {
    if (isEmpty(value)) return NOTHING;
    if (!Array.isArray(value)) return refuse(field, "must be a list of NAME=VALUE");
    const items = value.map((each) => {
      const [, name, rest] = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s.exec(text(field, each)) ?? refuse(field, "must be a list of NAME=VALUE");
      return `${name}=${escapeValue(rest ?? "")}`;
    });
    return { args: ["-v", items.join(",")] };
  },
  // The command and its directory are handled in wrJob.
  cmd: () => NOTHING,
  cwd: () => NOTHING,
  cwd_matters: () => NOTHING,
};

/** Fields of wr without a counterpart (W1). */
const REFUSED: Readonly<Record<string, string>> = {
  change_home: "jobs keep their home directory here",
  on_failure: "use a hook, or a job with -W depend=afternotok",
  on_success: "use a hook, or a job with -W depend=afterok",
  on_exit: "use a hook, or a job with -W depend=afterany",
  mounts: "there are no mounts here",
  mount_json: "there are no mounts here",
  queues_avoid: "name the queue",
  no_retry_over_walltime: "retries do not depend on the time here",
  limit_grps: "use limits of queues or projects, or a resource of the server",
  dep_grps: "use -W depend with ids of jobs",
  deps: "use -W depend with ids of jobs",
  cmd_deps: "use -W depend with ids of jobs",
  monitor_docker: "containers are not watched here",
  with_docker: "put the container's program into the command",
  with_singularity: "put the container's program into the command",
  container_mounts: "put the container's program into the command",
  cloud_os: "set the image of the backend",
  cloud_username: "set the attributes of the backend",
  cloud_ram: "ask for memory",
  cloud_script: "set the attributes of the backend",
  cloud_config_files: "set the attributes of the backend",
  cloud_shared: "set the attributes of the backend",
  bsub_mode: "there is no emulation of bsub here",
  modules: "load modules in the command",
  reserve_timeout: "runner_idle_wait of the backend says how long a runner waits",
};

const DEFAULTS: Readonly<Record<string, Value>> = { memory: "1G", time: "1h", cpus: 1, retries: 3, override: 0 };

/** Converts a line. Throws WrLineError. */
export function wrJob(line: string): WrJob {
  const tab = line.indexOf("\t");
  const json = line.startsWith("{") ? line : tab < 0 ? "{}" : line.slice(tab + 1).trim();
  const before = line.startsWith("{") ? "" : (tab < 0 ? line : line.slice(0, tab)).trim();
  const given = objectOf(json);
  const fields = { ...DEFAULTS, ...given };
  const cmd = before === "" ? text("cmd", fields["cmd"] ?? refuse("cmd", "is needed")) : before;
  if (before !== "" && fields["cmd"] !== undefined) refuse("cmd", "the line has a command before its JSON as well");
  if (cmd.trim() === "") refuse("cmd", "is empty");
  const partOf = ([field, value]: readonly [string, Value]): Part => {
    const convert = Object.hasOwn(FIELDS, field) ? FIELDS[field] : undefined;
    if (convert !== undefined) return convert(field, value);
    const why = Object.hasOwn(REFUSED, field) ? REFUSED[field] : undefined;
    if (why === undefined) return refuse(field, "is no field of wr");
    return isEmpty(value) ? NOTHING : refuse(field, `has no counterpart here: ${why}`);
  };
  const parts = Object.entries(given).map(partOf);
  const assumed = Object.entries(DEFAULTS)
    .filter(([field]) => given[field] === undefined)
    .map(partOf);
  const kind = /^[^\s/]*$/.exec((cmd.trim().split(/\s/)[0] ?? "").replace(/^.*\//, ""))?.[0] ?? "";
  const estgroup = isEmpty(fields["req_grp"] ?? "") && kind !== "" && !kind.includes(",") ? ["-W", `estgroup=${kind}`] : [];
  const chunk = [...parts, ...assumed].flatMap((part) => part.chunk ?? []);
  const place = directory(fields);
  return {
    assumed: [...assumed.flatMap((part) => part.args ?? []), ...estgroup],
    args: [...parts.flatMap((part) => part.args ?? []), ...place.args, "-l", `select=1:${chunk.sort().reverse().join(":")}`],
    command: ["/bin/sh", "-c", `${place.prefix}${cmd}`],
  };
}

function objectOf(json: string): Readonly<Record<string, Value>> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new WrLineError(`not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new WrLineError("the JSON must be an object");
  return value as Readonly<Record<string, Value>>;
}

/** Where the command runs: in a directory of its own that is removed afterwards, as in wr, or in cwd if cwd_matters. */
function directory(fields: Readonly<Record<string, Value>>): { readonly args: readonly string[]; readonly prefix: string } {
  const { cwd, cwd_matters = false } = fields;
  if (typeof cwd_matters !== "boolean") return refuse("cwd_matters", "must be true or false");
  if (!cwd_matters) {
    if (!isEmpty(cwd ?? "")) refuse("cwd", "without cwd_matters, jobs run in a directory of their own below the site's job directory");
    return { args: ["-W", "sandbox=PRIVATE"], prefix: "" };
  }
  const path = text("cwd", cwd ?? refuse("cwd", "cwd_matters needs it"));
  if (!path.startsWith("/")) refuse("cwd", "must be an absolute path");
  return { args: [], prefix: `cd '${path.replaceAll("'", "'\\''")}' || exit 1; ` };
}
