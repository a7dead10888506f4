// qsub: submits a job (docs/reference/commands.md 1), or many (`--batch`, docs/commands/qsub-batch.md).

import { ServerUnreachable } from "#protocol/client.ts";
import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex, cannotConnect, type Link, mustBeOurs } from "../../complex.ts";
import { PBSE_NOSUP, refusalStatus } from "../../errors.ts";
import { outputPathOf, workingDirectory } from "../../output-paths.ts";
import { type Draft, draftWarnings } from "../../qsub/draft.ts";
import {
  destinationOf,
  type Job,
  makeJob,
  QSUB_HELP,
  requestOf,
  SubmitError,
  type SubmitWorld,
  withServerDefaults,
} from "../../qsub/job.ts";
import { defaultArguments, submitRefusal } from "../../qsub/submit.ts";

export const run: Command = asCommand("qsub", QSUB_HELP, qsub);

const BLOCK_FAILED = 3;

export async function qsub(io: CommandIo, complex: Complex): Promise<number> {
  const batch = io.argv.indexOf("--batch");
  const literal = io.argv.indexOf("--");
  if (batch >= 0 && (literal < 0 || batch < literal)) {
    const { qsubBatch } = await import("../../qsub/batch.ts");
    return qsubBatch(io, complex, submitWorld(io, complex), batch);
  }
  try {
    const world = submitWorld(io, complex);
    const job = await makeJob(io.argv, world);
    const { server } = destinationOf(job.draft);
    const warnings = draftWarnings(job.draft);
    if (warnings !== "") io.err(warnings);
    await mustBeOurs(complex, server);
    return await submit(io, complex, await complex.connect(), job, world);
  } catch (error) {
    if (error instanceof SubmitError) {
      io.err(error.text);
      return error.status;
    }
    if (error instanceof ServerUnreachable) return cannotConnect(io, "qsub", complex, error);
    throw error;
  }
}

/** Runs an interactive job. Its code is loaded only now, because TLS and the C library take time to load. */
async function interactive(io: CommandIo, complex: Complex, link: Link, job: Job, draft: Draft): Promise<number> {
  if (io.terminal === undefined) {
    io.err("qsub: No support for requested service\n");
    return refusalStatus(PBSE_NOSUP);
  }
  const { interactiveJob } = await import("../../qsub/interactive.ts");
  return interactiveJob({ io, complex, terminal: await io.terminal(), x11: draft.flags.has("X") }, link, requestOf(job, draft));
}

function submitWorld(io: CommandIo, complex: Complex): SubmitWorld {
  const { server, values } = complex.conf();
  return {
    command: "qsub",
    now_ms: complex.now_ms(),
    server,
    env: io.env,
    cwd: io.cwd,
    directory: workingDirectory(io),
    conf_values: values,
    outputPath: outputPathOf(io, complex),
    display: (io.env["DISPLAY"] ?? "") !== "",
    get terminal() {
      return io.stdoutIsTty && io.stdin.isTTY === true;
    },
    readStdin: () => readStdin(io),
  };
}

async function readStdin(io: CommandIo): Promise<Buffer> {
  if (io.stdin.isTTY) io.out("Job script will be read from standard input. Submit with CTRL+D.\n");
  const pieces: Buffer[] = [];
  for await (const piece of io.stdin) pieces.push(typeof piece === "string" ? Buffer.from(piece) : (piece as Buffer));
  return Buffer.concat(pieces);
}

async function submit(io: CommandIo, complex: Complex, link: Link, job: Job, world: SubmitWorld): Promise<number> {
  try {
    const draft = withServerDefaults(job, await defaultArguments(link, complex), world);
    if (draft.flags.has("I")) return await interactive(io, complex, link, job, draft);
    const reply = await link.request(requestOf(job, draft));
    if (!reply.ok) {
      io.err(submitRefusal(reply));
      return refusalStatus(reply.code);
    }
    const { id } = reply.value as { readonly id: string };
    if (!draft.flags.has("z")) io.out(`${id}\n`);
    return isBlocking(draft) ? await waitForJob(io, link, id) : 0;
  } finally {
    link.close();
  }
}

const isBlocking = (draft: Draft): boolean => draft.flags.get("block")?.value === "true";

/** Waits until the job has ended, and returns its exit status (-W block=true). */
async function waitForJob(io: CommandIo, link: Link, id: string): Promise<number> {
  const reply = await link.request({ kind: "wait-job", job: id });
  if (!reply.ok) {
    io.err(`qsub: ${id} ${reply.text ?? `Error (${reply.code})`}\n`);
    return BLOCK_FAILED;
  }
  const { exit_status, message } = (reply.value ?? {}) as { readonly exit_status?: number; readonly message?: string };
  if (message !== undefined) {
    io.err(`qsub: ${id} ${message}\n`);
    return BLOCK_FAILED;
  }
  return (exit_status ?? 0) & 255;
}
