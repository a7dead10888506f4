// `partita seff JOB`: what a job has used of what it asked for. The server is asked, so a caller sees the jobs that qstat would show.

import { pbseText } from "#model/pbse.ts";
import { hostsOf } from "#model/request/host-entry.ts";
import { collectInto } from "#protocol/client.ts";
import type { StatusItem, WireAttrs } from "#protocol/messages.ts";
import { connectWatched, patienceOf, silentServer } from "#protocol/watched-link.ts";
import { efficiencyText, type JobFacts, jobEfficiency } from "#report/job-efficiency.ts";
import type { Conf } from "#support/conf.ts";
import { AdminError } from "../complex/complex-home.ts";

/** Returns the efficiency of a job as text or JSON. Throws AdminError if the server does not know the job or the job has not started. */
export async function seff(conf: Conf, job: string, json: boolean): Promise<string> {
  const patience = patienceOf((key) => process.env[key] ?? conf.values[key]);
  const link = await connectWatched(conf, { patience, silent: () => process.stderr.write(silentServer("partita", conf.server)) });
  const items: StatusItem[] = [];
  try {
    const request = { kind: "status", object: "job", ids: [job], history: "with" } as const;
    const reply = await link.request(request, { onPart: collectInto(items) });
    if (!reply.ok) throw new AdminError(`${reply.text ?? pbseText(reply.code) ?? `error ${reply.code}`} ${job}`);
  } finally {
    link.close();
  }
  const [item] = items;
  if (item === undefined) throw new AdminError(`the server has no job ${job}`);
  if ("code" in item) throw new AdminError(`${item.text ?? pbseText(item.code) ?? `error ${item.code}`} ${item.id}`);
  if (item.attrs["stime"] === undefined) throw new AdminError(`job ${item.id} has not started`);
  const efficiency = jobEfficiency(factsOf(item.id, item.attrs));
  return json ? `${JSON.stringify(efficiency, null, 2)}\n` : efficiencyText(efficiency);
}

function factsOf(id: string, attrs: WireAttrs): JobFacts {
  const text = (name: string): string => (typeof attrs[name] === "string" ? attrs[name] : "");
  const exit_status = text("Exit_status");
  return {
    id,
    name: text("Job_Name"),
    owner: text("Job_Owner"),
    queue: text("queue"),
    state: text("job_state"),
    exit_status: exit_status === "" ? null : Number(exit_status),
    hosts: text("exec_host") === "" ? [] : hostsOf(text("exec_host")),
    asked: resourcesOf(attrs["Resource_List"]),
    used: resourcesOf(attrs["resources_used"]),
  };
}

function resourcesOf(value: WireAttrs[string] | undefined): Readonly<Record<string, string>> {
  if (value === undefined || typeof value === "string" || Array.isArray(value)) return {};
  return Object.fromEntries(Object.entries(value).map(([name, text]) => [name, Array.isArray(text) ? text.join(",") : String(text)]));
}
