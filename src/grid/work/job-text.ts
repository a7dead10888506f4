// What a job of a campaign runs, and the environment that it gets. Pure.

import type { JobText } from "#backends/contract/cluster.ts";
import type { JdlCluster } from "../jdl/jdl.ts";
import { parameterAt, parameterName, parameterWords } from "../jdl/parameters.ts";
import type { CampaignRecord, GridJob } from "../state/grid-state.ts";

/** Returns the text of a job. CIGRI_NODE_FILE and CIGRI_WORKDIR are set where the job runs, because only its cluster knows them. */
export function jobText(campaign: CampaignRecord, { id, task }: Pick<GridJob, "id" | "task">, on: JdlCluster): JobText {
  const name = parameterName(campaign.parameters, task);
  const here = (text: string): string => text.replaceAll("{CAMPAIGN_ID}", String(campaign.id));
  return {
    exec: on.exec.map(here),
    parameters: parameterWords(campaign.parameters, task),
    directory: here(on.directory),
    output: { out: `cigri.${campaign.id}.${id}.out`, err: `cigri.${campaign.id}.${id}.err` },
    env: {
      CIGRI_JOB_ID: String(id),
      CIGRI_JOBID: String(id),
      CIGRI_CAMPAIGNID: String(campaign.id),
      CIGRI_CAMPAIGN_ID: String(campaign.id),
      CIGRI_JOB_NAME: name,
      CIGRI_JOBNAME: name,
      CIGRI_USER: campaign.user,
      CIGRI_RESOURCES: on.request.kind === "select" ? on.request.select : on.request.resources,
      CIGRI_WALLTIME: clockText(on.walltime_s),
      CIGRI_WALLTIME_SECONDS: String(on.walltime_s),
      PBS_CAMPAIGN_ID: String(campaign.id),
      PBS_CAMPAIGN_NAME: campaign.jdl.name,
      PBS_CAMPAIGN_JOB_ID: String(id),
      PBS_CAMPAIGN_JOB_NAME: name,
      PBS_CAMPAIGN_PARAMETERS: parameterAt(campaign.parameters, task),
      PBS_CAMPAIGN_INDEX: String(task),
      PBS_CAMPAIGN_USER: campaign.user,
    },
  };
}

/** Returns seconds as HH:MM:SS. */
function clockText(seconds: number): string {
  const two = (part: number): string => String(Math.floor(part)).padStart(2, "0");
  return `${two(seconds / 3600)}:${two((seconds % 3600) / 60)}:${two(seconds % 60)}`;
}
