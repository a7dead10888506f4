// `partita explain JOB`: why a job waits and when it could start, as its scheduler sees it (src/sched/explain.ts); here it is asked for and laid out.

import { pbseText } from "#model/pbse.ts";
import { connectServer } from "#protocol/client.ts";
import type { Explanation } from "#protocol/explanation.ts";
import type { Conf } from "#support/conf.ts";
import { AdminError } from "./complex-home.ts";
import { explanationText } from "./explanation-text.ts";

/** Asks the job's scheduler, through the server. Refusals become AdminError. */
export async function askExplanation(conf: Conf, job: string): Promise<Explanation> {
  const link = await connectServer(conf);
  try {
    const reply = await link.request({ kind: "explain-job", job });
    if (!reply.ok) throw new AdminError(`${reply.text ?? pbseText(reply.code) ?? `error ${reply.code}`} ${job}`);
    return reply.value as Explanation;
  } finally {
    link.close();
  }
}

/** As text, or as JSON. */
export async function explain(conf: Conf, job: string, json: boolean): Promise<string> {
  const told = await askExplanation(conf, job);
  return json ? `${JSON.stringify(told, null, 2)}\n` : explanationText(told);
}
