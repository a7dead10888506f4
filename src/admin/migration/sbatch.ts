// Translates a batch script of Slurm into one of PBS: the lines `#SBATCH` become lines `#PBS`, and every option is explained. Pure.
//
// B1. The body of the script stays as it is. Lines in front of it give the variables of Slurm that the body uses the values of PBS, and change to the directory
//     of the submission, where Slurm starts jobs.
// B2. Options for nodes, tasks, cpus and memory become one select, because PBS requests whole chunks.
// Source of the options: the manual page of sbatch, Slurm 22.05.

/** What became of one option. pbs: the lines or texts of PBS; "": there is nothing like it. */
type Explained = { readonly line: number; readonly option: string; readonly pbs: string; readonly says: string };
export type Translation = { readonly script: string; readonly options: readonly Explained[]; readonly notes: readonly string[] };

type Option = { readonly line: number; readonly name: string; readonly value: string };

const SHORT: Readonly<Record<string, string>> = {
  A: "account",
  a: "array",
  c: "cpus-per-task",
  C: "constraint",
  D: "chdir",
  d: "dependency",
  e: "error",
  H: "hold",
  J: "job-name",
  L: "licenses",
  N: "nodes",
  n: "ntasks",
  o: "output",
  p: "partition",
  q: "qos",
  t: "time",
  W: "wait",
  w: "nodelist",
  x: "exclude",
};
const WITHOUT_VALUE = new Set(["hold", "wait", "exclusive", "requeue", "no-requeue", "overcommit", "contiguous"]);
/** Options whose value may be left out. */
const OPTIONAL_VALUE = new Set(["exclusive"]);
const CHUNK = new Set([
  "nodes",
  "ntasks",
  "ntasks-per-node",
  "cpus-per-task",
  "mem",
  "mem-per-cpu",
  "gres",
  "gpus",
  "gpus-per-node",
  "exclusive",
  "nodelist",
]);

/** Variables of Slurm, and the words of a shell with the same value in a job of PBS. */
const VARIABLES: Readonly<Record<string, string>> = {
  SLURM_JOB_ID: '"$PBS_JOBID"',
  SLURM_JOBID: '"$PBS_JOBID"',
  SLURM_JOB_NAME: '"$PBS_JOBNAME"',
  SLURM_JOB_PARTITION: '"$PBS_QUEUE"',
  SLURM_SUBMIT_DIR: '"$PBS_O_WORKDIR"',
  SLURM_SUBMIT_HOST: '"$PBS_O_HOST"',
  SLURM_ARRAY_TASK_ID: '"$PBS_ARRAY_INDEX"',
  SLURM_ARRAY_JOB_ID: '"$PBS_ARRAY_ID"',
  SLURM_CPUS_PER_TASK: '"$NCPUS"',
  SLURM_NTASKS: '"$(wc -l <"$PBS_NODEFILE")"',
  SLURM_NNODES: '"$(sort -u "$PBS_NODEFILE" | wc -l)"',
  SLURM_JOB_NUM_NODES: '"$(sort -u "$PBS_NODEFILE" | wc -l)"',
  SLURM_JOB_NODELIST: '"$(sort -u "$PBS_NODEFILE" | paste -sd, -)"',
};

/** Translates a script. Never fails: what cannot be translated is explained. */
export function translateScript(text: string): Translation {
  const lines = text.split("\n");
  const head = lines[0]?.startsWith("#!") ? [lines[0]] : [];
  const first = lines.findIndex((line, at) => at >= head.length && line.trim() !== "" && !line.trim().startsWith("#"));
  const end = first < 0 ? lines.length : first;
  const options: Option[] = [];
  const kept: string[] = [];
  for (let at = head.length; at < end; at++) {
    const line = lines[at] ?? "";
    if (/^#SBATCH\s/.test(line)) options.push(...optionsOf(line.slice("#SBATCH".length), at + 1));
    else kept.push(line);
  }
  const body = lines.slice(end);
  const explained = [
    ...explainChunks(options),
    ...options.filter(({ name }) => !CHUNK.has(name)).map((option) => explain(option, options)),
  ];
  if (options.some(({ name }) => name === "output") && !options.some(({ name }) => name === "error"))
    explained.push({ line: 0, option: "(no --error)", pbs: "-j oe", says: "Slurm writes both streams into one file" });
  const directives = explained.filter(({ pbs }) => pbs.startsWith("-")).map(({ pbs }) => `#PBS ${pbs}`);
  const start = startLines(options, body);
  return {
    script: [...head, ...directives, ...kept, ...start, ...body].join("\n"),
    options: explained.sort((a, b) => a.line - b.line),
    notes: notesOf(body),
  };
}

/** Splits the words of a directive into options. A word in quotation marks is one word. */
function optionsOf(text: string, line: number): readonly Option[] {
  const words = [...text.matchAll(/(?:[^\s"']|"[^"]*"|'[^']*')+/g)].map(([word]) => word.replaceAll(/["']/g, ""));
  const options: Option[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (word.startsWith("#")) break;
    const [flag = "", ...rest] = word.split("=");
    const short = /^-([A-Za-z])(.*)$/.exec(word);
    const name = word.startsWith("--") ? flag.slice(2) : (SHORT[short?.[1] ?? ""] ?? word);
    let value = word.startsWith("--") ? rest.join("=") : (short?.[2] ?? "");
    if (value === "" && !WITHOUT_VALUE.has(name) && !OPTIONAL_VALUE.has(name) && !(words[at + 1] ?? "-").startsWith("-"))
      value = words[++at] ?? "";
    options.push({ line, name, value });
  }
  return options;
}

/** Makes one select and one place from the options for nodes, tasks, cpus, memory and devices (B2). */
function explainChunks(options: readonly Option[]): Explained[] {
  const asked = options.filter(({ name }) => CHUNK.has(name));
  const [firstOf] = asked;
  if (firstOf === undefined) return [];
  const text = (name: string): string | undefined => asked.findLast((option) => option.name === name)?.value;
  const count = (name: string): number | null => {
    const value = Number.parseInt(text(name) ?? "", 10);
    return Number.isNaN(value) ? null : value;
  };
  const cpus = count("cpus-per-task") ?? 1;
  const nodes = count("nodes");
  const tasks = count("ntasks") ?? (nodes ?? 1) * (count("ntasks-per-node") ?? 1);
  const per_node = count("ntasks-per-node") ?? (nodes === null ? 1 : Math.ceil(tasks / nodes));
  const chunks = nodes ?? tasks;
  const chunk = [`ncpus=${per_node * cpus}`];
  if (per_node > 1 || chunks > 1) chunk.push(`mpiprocs=${per_node}`);
  if (cpus > 1) chunk.push(`ompthreads=${cpus}`);
  const mem = memoryOf(text("mem"), nodes === null ? chunks : 1) ?? memoryOf(text("mem-per-cpu"), 1 / (per_node * cpus));
  if (mem !== null) chunk.push(`mem=${mem}`);
  const gpus = gpusOf(text("gpus-per-node") ?? text("gres")) ?? divided(gpusOf(text("gpus")), chunks);
  if (gpus !== null) chunk.push(`ngpus=${gpus}`);
  const host = text("nodelist");
  if (host !== undefined && /^[\w.-]+$/.test(host)) chunk.push(`host=${host}`);
  const exclusive = asked.some(({ name }) => name === "exclusive");
  const place = nodes === null ? (exclusive ? "excl" : null) : exclusive ? "scatter:excl" : nodes > 1 ? "scatter" : null;
  const select: Explained = {
    line: firstOf.line,
    option: asked.map(({ name, value }) => `--${name}${value === "" ? "" : `=${value}`}`).join(" "),
    pbs: `-l select=${chunks}:${chunk.join(":")}`,
    says: `${chunks} chunks, each on one host; mpiprocs is the number of lines of a chunk in PBS_NODEFILE`,
  };
  return place === null
    ? [select]
    : [select, { line: firstOf.line, option: "(the same)", pbs: `-l place=${place}`, says: "scatter: every chunk on another host" }];
}

/** Returns a size of Slurm (`4G`; without a unit, MiB) as one of PBS, divided by `parts` and rounded up; null: there is none, or it means all memory. */
function memoryOf(text: string | undefined, parts: number): string | null {
  const match = /^(\d+)([KMGT]?)B?$/i.exec(text ?? "");
  if (match === null || match[1] === "0") return null;
  const kb = Number(match[1]) * 1024 ** "KMGT".indexOf((match[2] || "M").toUpperCase());
  const part = Math.ceil(kb / parts);
  return part % 1024 ** 2 === 0 ? `${part / 1024 ** 2}gb` : part % 1024 === 0 ? `${part / 1024}mb` : `${part}kb`;
}

/** Returns the number in `gpu:a100:2`, `a100:2` or `2`; null: none. */
function gpusOf(text: string | undefined): number | null {
  const match = /(?:^|:)(\d+)$/.exec(text ?? "");
  if (match !== null) return Number(match[1]);
  return text?.startsWith("gpu") ? 1 : null;
}

const divided = (value: number | null, parts: number): number | null => (value === null ? null : Math.ceil(value / parts));

/** Explains an option that stands for itself. */
function explain({ line, name, value }: Option, options: readonly Option[]): Explained {
  const option = `--${name}${value === "" ? "" : `=${value}`}`;
  const to = (pbs: string, says = ""): Explained => ({ line, option, pbs, says });
  switch (name) {
    case "job-name":
      return to(`-N ${value}`);
    case "time":
      return walltimeOf(value) === null ? to("", "this is not a time of Slurm") : to(`-l walltime=${walltimeOf(value)}`);
    case "partition":
      return to(
        `-q ${value.split(",")[0]}`,
        value.includes(",") ? "PBS takes one queue; a routing queue chooses among several" : "partitions of Slurm are queues",
      );
    case "account":
      return to(`-A ${value}`);
    case "array":
      return arrayOf(value) === null
        ? to("", "PBS takes one range X-Y:Z with %MAX; submit an array for each range, or map PBS_ARRAY_INDEX to the numbers in the script")
        : to(`-J ${arrayOf(value)}`, "a subjob has its number in PBS_ARRAY_INDEX");
    case "dependency":
      return dependencyOf(value) === null
        ? to("", "PBS has no such dependency, and no `?`")
        : to(`-W depend=${dependencyOf(value)}`, "job ids of the other system mean nothing here");
    case "output":
      return pathOf("-o", line, option, value);
    case "error":
      return pathOf("-e", line, option, value);
    case "mail-user":
      return to(`-M ${value}`);
    case "mail-type":
      return to(`-m ${mailOf(value)}`, "b: begin, e: end, a: abort, n: none");
    case "export":
      if (value === "NONE") return to("", "PBS passes no variables on unless asked to");
      return value === "ALL" ? to("-V") : to(`-v ${value.replace(/^ALL,/, "")}`, value.startsWith("ALL,") ? "for ALL add -V" : "");
    case "hold":
      return to("-h");
    case "wait":
      return to("-W block=true");
    case "requeue":
      return to("-r y");
    case "no-requeue":
      return to("-r n");
    case "nice":
      return to(`-p ${-Math.min(1023, Math.round((Number(value) || 100) / 10))}`, "PBS has priorities from -1024 to 1023");
    case "chdir":
      return to(`cd ${value}`, "a line at the beginning of the script");
    case "reservation":
      return to(`-q ${value}`, "a reservation of PBS has a queue, named in pbs_rstat");
    case "licenses":
      return to(`-l ${value.replaceAll(":", "=")}`, "licences are resources of the server that the administrator has defined");
    case "qos":
      return to("", "the site's administrator names a queue for it");
    case "constraint":
      return to("", "a resource of the hosts, in the select: -l select=1:NAME=True");
    case "begin":
      return to("", "-a [[CC]YY]MMDDhhmm[.SS] gives the earliest start");
    default:
      return to("", options.length > 0 ? "PBS has nothing like it" : "");
  }
}

/** Times of Slurm: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S. */
function walltimeOf(text: string): string | null {
  const match = /^(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?$/.exec(text);
  if (match === null) return null;
  const [, days, a = "0", b, c] = match;
  const two = (value: number): string => String(value).padStart(2, "0");
  const parts =
    days !== undefined
      ? [Number(a), Number(b ?? 0), Number(c ?? 0)]
      : b === undefined
        ? [0, Number(a), 0]
        : c === undefined
          ? [0, Number(a), Number(b)]
          : [Number(a), Number(b), Number(c)];
  const seconds = Number(days ?? 0) * 86_400 + (parts[0] ?? 0) * 3600 + (parts[1] ?? 0) * 60 + (parts[2] ?? 0);
  return `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

/** Ranges of Slurm as -J takes them; null: several ranges, or one number. */
const arrayOf = (text: string): string | null => (/^\d+-\d+(:\d+)?(%\d+)?$/.test(text) ? text : null);

function dependencyOf(text: string): string | null {
  const parts = text.split(",");
  return parts.every((part) => /^(after|afterok|afternotok|afterany)(:[\w.[\]-]+)+$/.test(part)) ? text : null;
}

/** Patterns of Slurm in paths of output. Without a path, PBS writes JOBNAME.oNUMBER. */
function pathOf(flag: string, line: number, option: string, value: string): Explained {
  const path = value.replaceAll("%a", "^array_index^").replaceAll("%x", "");
  if (/%[A-Za-z]/.test(path.replaceAll("%j", "").replaceAll("%A", "")) || value.includes("%x"))
    return { line, option, pbs: "", says: "PBS knows only ^array_index^ in paths; without the option the file is JOBNAME.oNUMBER" };
  if (/%[jA]/.test(path)) {
    const directory = path.includes("/") ? path.slice(0, path.lastIndexOf("/") + 1) : "";
    if (directory === "")
      return { line, option, pbs: "", says: "without the option the file is JOBNAME.oNUMBER, in the directory of the submission" };
    return { line, option, pbs: `${flag} ${directory}`, says: "a directory: the file gets the name NUMBER.SERVER.OU or .ER" };
  }
  return { line, option, pbs: `${flag} ${path}`, says: "" };
}

function mailOf(value: string): string {
  const types = value.toUpperCase().split(",");
  const has = (...names: string[]): boolean => names.some((name) => types.includes(name));
  const letters = `${has("BEGIN", "ALL") ? "b" : ""}${has("END", "ALL") ? "e" : ""}${has("FAIL", "ALL", "REQUEUE", "TIME_LIMIT") ? "a" : ""}`;
  return letters === "" ? "n" : letters;
}

/** The lines in front of the body (B1). */
function startLines(options: readonly Option[], body: readonly string[]): readonly string[] {
  const chdir = options.findLast(({ name }) => name === "chdir")?.value;
  const text = body.join("\n");
  const used = Object.keys(VARIABLES).filter((name) => new RegExp(`\\b${name}\\b`).test(text));
  return [
    chdir === undefined ? 'cd "$PBS_O_WORKDIR" || exit 1' : `cd "${chdir}" || exit 1`,
    ...used.map((name) => `export ${name}=${VARIABLES[name]}`),
  ];
}

function notesOf(body: readonly string[]): readonly string[] {
  const text = body.join("\n");
  const notes: string[] = [];
  if (/^\s*srun\b/m.test(text))
    notes.push("srun: use mpirun for MPI programs, pbsdsh for one copy on each chunk, or nothing for a single task");
  if (/\b(sbatch|squeue|scancel|scontrol|sacct)\b/.test(text)) notes.push("sbatch, squeue, scancel: use qsub, qstat, qdel");
  const unknown = [...new Set([...text.matchAll(/\bSLURM_[A-Z_]+\b/g)].map(([name]) => name))].filter((name) => !(name in VARIABLES));
  if (unknown.length > 0) notes.push(`${unknown.join(", ")}: PBS has no variable with this meaning`);
  return notes;
}
