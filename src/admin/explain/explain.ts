// `partita explain JOB`: shows why a job waits and when it could start, as its scheduler sees it
// (src/sched/explain/explain.ts). This file sends the request and prints the answer.

import { pbseText } from "#model/pbse.ts";
import type { Explanation } from "#protocol/explanation.ts";
import { connectWatched, type LinkWatch, patienceOf, silentServer } from "#protocol/watched-link.ts";
import type { Conf } from "#support/conf.ts";
import { AdminError } from "../complex/complex-home.ts";
import { explanationText } from "./explanation-text.ts";

/** Asks the job's scheduler, through the server, for an explanation. watch: what to do if the server does not answer. A refusal becomes an AdminError. */
export async function askExplanation(conf: Conf, job: string, watch: Pick<LinkWatch, "patience" | "silent">): Promise<Explanation> {
  const link = await connectWatched(conf, watch);
  try {
    const reply = await link.request({ kind: "explain-job", job });
    if (!reply.ok) throw new AdminError(`${reply.text ?? pbseText(reply.code) ?? `error ${reply.code}`} ${job}`);
    return reply.value as Explanation;
  } finally {
    link.close();
  }
}

/** Returns the explanation as text, or as JSON. */
export async function explain(conf: Conf, job: string, json: boolean): Promise<string> {
  const patience = patienceOf((key) => process.env[key] ?? conf.values[key]);
  const told = await askExplanation(conf, job, { patience, silent: () => process.stderr.write(silentServer("partita", conf.server)) });
  return json ? `${JSON.stringify(told, null, 2)}\n` : explanationText(told);
}
