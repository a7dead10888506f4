// qsub on a test's server core: converts the words of a command line to the command's request.

import assert from "node:assert/strict";
import { makeJob, requestOf, type SubmitWorld } from "#cli/qsub/job.ts";
import type { AttrOp, QueueJobRequest } from "#protocol/messages.ts";
import type { Peer } from "#server/engine/identity.ts";
import { ALICE, ask, type Harness, HOST, outcome } from "../harness.ts";

/** The request of `qsub WORDS` by a user whose home and working directory is /home/NAME. */
export async function submission(h: Harness, words: string, who: Peer = ALICE): Promise<QueueJobRequest> {
  const home = `/home/${who.user}`;
  const world: SubmitWorld = {
    command: "qsub",
    now_ms: h.now_ms,
    server: HOST,
    display: false,
    terminal: false,
    cwd: home,
    directory: home,
    conf_values: {},
    env: { HOME: home, LOGNAME: who.user, PATH: "/bin:/usr/bin", SHELL: "/bin/sh" },
    outputPath: (text: string) => `${HOST}:${text.startsWith("/") ? text : `${home}/${text}`}`,
    readStdin: async () => Buffer.from("echo hello\n"),
  } as SubmitWorld;
  const job = await makeJob(
    words.split(" ").filter((word) => word !== ""),
    world,
  );
  return requestOf(job, job.draft);
}

/** The id of a job that must be accepted. */
export async function qsub(h: Harness, words: string, who: Peer = ALICE): Promise<string> {
  const answer = ask(h, who, await submission(h, words, who));
  assert.equal(answer?.ok, true, `qsub ${words}: ${JSON.stringify(answer)}`);
  return (answer as { readonly value: { readonly id: string } }).value.id;
}

/** `15018 Unknown queue`, or "ok". */
export const qsubVerdict = async (h: Harness, words: string, who: Peer = ALICE): Promise<string> =>
  outcome(h, who, await submission(h, words, who));

/** `qalter` with attributes as `Resource_List.walltime=300`. */
export function qalter(h: Harness, job: string, changes: readonly string[], who: Peer = ALICE): string {
  const attrs = changes.map((text): AttrOp => {
    const equals = text.indexOf("=");
    const [name = "", resource] = text.slice(0, equals).split(".");
    return { name, op: "=", value: text.slice(equals + 1), ...(resource === undefined ? {} : { resource }) };
  });
  return outcome(h, who, { kind: "modify-job", job, attrs });
}
