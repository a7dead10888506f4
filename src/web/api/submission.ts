// Submission of a job: the body of POST /api/v1/jobs, and the request that it becomes.

import { z } from "zod";
import type { AttrValueText, QueueJobRequest } from "#protocol/messages.ts";
import { JOBS } from "./kinds.ts";
import { type Problem, problem } from "./problem.ts";

/** The largest script, in characters. */
const SCRIPT_MAX = 512 * 1024;
const TEXT_MAX = 65_536;
const NAME_MAX = 255;
const ATTRIBUTES_MAX = 200;

const scalar = z.union([z.string().max(TEXT_MAX), z.number(), z.boolean()]);
const few = <T extends z.ZodType>(value: T) =>
  z
    .record(z.string().min(1).max(NAME_MAX), value)
    .refine((record) => Object.keys(record).length <= ATTRIBUTES_MAX, `more than ${ATTRIBUTES_MAX} members`);

/** The body of a submission. attributes: as the interface shows them; a resource list is an object. */
export const SUBMISSION = z.strictObject({
  script: z.string().min(1).max(SCRIPT_MAX),
  queue: z.string().max(NAME_MAX).optional(),
  /** the directory in which output files arrive and the job starts, as with qsub in this directory */
  directory: z
    .string()
    .regex(/^\/[^\0\n]*$/)
    .max(4096)
    .optional(),
  attributes: few(z.union([scalar, few(scalar)])).optional(),
});

/** The user of a submission. */
export type Submitter = { readonly user: string; readonly home: string; readonly shell: string };

/** Attributes that only qsub can give a meaning. */
const OF_QSUB: ReadonlySet<string> = new Set(["interactive", "executable", "argument_list"]);

/** Turns a body into a request. `#PBS` lines of the script are not read. */
export function submitRequest(body: unknown, submitter: Submitter): QueueJobRequest | Problem {
  const parsed = SUBMISSION.safeParse(body);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return problem(400, `${issue?.path.join(".") || "the body"}: ${issue?.message ?? "not understood"}`);
  }
  const { script, queue = "", directory = submitter.home, attributes = {} } = parsed.data;
  const attrs: AttrValueText[] = [];
  let variables = originVariables(submitter, directory);
  for (const [name, value] of Object.entries(attributes)) {
    const def = JOBS.table.byName(name);
    if (def === undefined || OF_QSUB.has(def.name))
      return problem(400, `attributes.${name}: a job that is submitted here has no such attribute`);
    if ((def.type === "resource_list") !== (typeof value === "object"))
      return problem(
        400,
        `attributes.${def.name}: ${def.type === "resource_list" ? "must be an object of resources" : "must be a single value"}`,
      );
    if (typeof value === "object")
      for (const [resource, each] of Object.entries(value)) attrs.push({ name: def.name, resource, value: textOf(each) });
    else if (def.name === "Variable_List") variables = `${variables},${textOf(value)}`;
    else attrs.push({ name: def.name, value: textOf(value) });
  }
  return { kind: "queue-job", destination: queue, attrs: [...attrs, { name: "Variable_List", value: variables }], script };
}

const textOf = (value: string | number | boolean): string => (value === true ? "True" : value === false ? "False" : String(value));

/** The variables that qsub would send. PATH is that of a login without settings of the user, because there is no login. */
function originVariables({ user, home, shell }: Submitter, directory: string): string {
  const rows = {
    PBS_O_HOME: home,
    PBS_O_LOGNAME: user,
    PBS_O_PATH: "/usr/local/bin:/usr/bin:/bin",
    PBS_O_SHELL: shell,
    PBS_O_WORKDIR: directory,
    PBS_O_SYSTEM: "Linux",
  };
  return Object.entries(rows)
    .map(([name, value]) => `${name}=${value.replace(/[\\,"']/g, "\\$&")}`)
    .join(",");
}
