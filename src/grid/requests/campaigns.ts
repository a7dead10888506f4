// Requests that submit, change and end campaigns. Pure.

import type { GridAddJobs, GridChange, GridSubmit } from "#protocol/grid-messages.ts";
import { JDL_LIMITS, type Jdl, jdlFaultText, parseJdl, campaignOf as planOf } from "../jdl/jdl.ts";
import { countedParameters, type Parameters, parametersOf } from "../jdl/parameters.ts";
import type { CampaignRecord } from "../state/grid-state.ts";
import { isOpen } from "../state/grid-state.ts";
import type { GridCore } from "../work/core.ts";
import type { Asker, GridAnswer } from "./answers.ts";
import { badValue, mayChange, type Refused, wrongState } from "./answers.ts";
import { findCampaign } from "./status.ts";

/** The name of the campaign file in messages. The command replaces it by the name that the user gave. */
const FILE = "JDL";
/** The largest number of campaigns that one user has that have not ended. */
const USER_CAMPAIGNS_MAX = 1000;

export function submitCampaign(
  core: GridCore,
  asker: Asker,
  { jdl: jdl_text, type, parameters: text }: GridSubmit,
  at_s: number,
): GridAnswer {
  const { clusters, campaigns } = core.state;
  const own = [...campaigns.values()].filter((campaign) => campaign.user === asker.name && isOpen(campaign)).length;
  if (own >= USER_CAMPAIGNS_MAX) return wrongState(`${asker.name} has ${own} campaigns that have not ended, and may not have more`);
  const read = parseJdl(jdl_text, clusters, type === undefined ? {} : { kind: type });
  if ("faults" in read) return badValue(read.faults.map((fault) => jdlFaultText(fault, FILE)).join("\n"));
  const { jdl } = read;
  const missing = missingOf(jdl);
  if (missing !== null) return badValue(missing);
  const parameters = parametersFor(jdl, text);
  if ("ok" in parameters) return parameters;
  const user = core.user ?? asker.name;
  const facts = [...jdl.clusters.keys()].flatMap((name) => {
    const cluster = clusters.get(name);
    if (cluster === undefined) return [];
    const { type: kind, default_resources, resource_unit } = cluster;
    return [{ name, type: kind, default_resources, resource_unit }];
  });
  const plan = (id: number) => planOf(id, user, jdl);
  const campaign = { user, jdl, jdl_text, kind_given: type ?? null, facts, parameters, plan, at_s };
  return { ok: true, value: { id: core.apply({ kind: "campaign-submitted", campaign }) } };
}

/** Names the first key of the campaign that is not obeyed yet; null: there is none. */
function missingOf({ inputs, clusters }: Jdl): string | null {
  if (inputs.length > 0) return `${FILE}: inputs: campaigns do not copy input files yet`;
  for (const [name, { prologue, epilogue, checkpointing }] of clusters) {
    const key = prologue.length > 0 ? "prologue" : epilogue.length > 0 ? "epilogue" : checkpointing !== null ? "checkpointing" : null;
    const why = key === "checkpointing" ? "jobs are not told by a signal to write checkpoints yet" : `campaigns do not run ${key}s yet`;
    if (key !== null) return `${FILE}: clusters.${name}.${key}: ${why}`;
  }
  return null;
}

/** Returns the number of jobs that a campaign will have if it is submitted; null: the campaign has faults. */
export function jobsOf(core: GridCore, { jdl, type, parameters: text }: GridSubmit): number | null {
  const read = parseJdl(jdl, core.state.clusters, type === undefined ? {} : { kind: type });
  if ("faults" in read) return null;
  const parameters = parametersFor(read.jdl, text);
  return "ok" in parameters ? null : parameters.count;
}

function parametersFor({ source }: Jdl, text: string | undefined): Parameters | Refused {
  if (source.kind === "given")
    return text === undefined ? source.parameters : badValue("a parameter file was sent, but the JDL names none");
  if (text === undefined) return badValue(`the text of param_file ${source.path} is missing`);
  const parameters = parametersOf(text, JDL_LIMITS);
  return "line" in parameters ? badValue(`${source.path}:${parameters.line}: ${parameters.text}`) : parameters;
}

export function growCampaign(core: GridCore, asker: Asker, { campaign: id, parameters: text }: GridAddJobs): GridAnswer {
  const campaign = findCampaign(core, id);
  if ("code" in campaign) return campaign;
  const refused = mayChange(asker, campaign.user, `campaign ${id}`) ?? (isOpen(campaign) ? null : wrongState(`campaign ${id} has ended`));
  if (refused !== null) return refused;
  if (campaign.plan.kind === "test") return wrongState(`campaign ${id} is a test campaign`);
  const parameters = grown(campaign, text);
  if ("ok" in parameters) return parameters;
  core.apply({ kind: "campaign-grown", id, parameters });
  return { ok: true, value: { id, added: parameters.count - campaign.parameters.count } };
}

function grown({ parameters: before }: CampaignRecord, text: string): Parameters | Refused {
  if (before.text === null) {
    const more = Number(text.trim());
    const fits = Number.isInteger(more) && more >= 1 && before.count + more <= JDL_LIMITS.parameters_max;
    return fits ? countedParameters(before.count + more) : badValue("the campaign counts its jobs: give the number of further jobs");
  }
  const parameters = parametersOf(`${before.text}\n${text}`, JDL_LIMITS);
  return "line" in parameters ? badValue(parameters.text) : parameters;
}

export function changeCampaigns(core: GridCore, asker: Asker, { campaigns: ids, action }: GridChange, at_s: number): GridAnswer {
  const found: CampaignRecord[] = [];
  for (const id of ids) {
    const campaign = findCampaign(core, id);
    if ("code" in campaign) return campaign;
    const refused = mayChange(asker, campaign.user, `campaign ${id}`);
    if (refused !== null) return refused;
    if (!isOpen(campaign)) return wrongState(`campaign ${id} has ended`);
    found.push(campaign);
  }
  for (const campaign of found) {
    if (action === "delete") core.cancel(campaign, at_s);
    else core.apply({ kind: "campaign-state", id: campaign.id, state: action === "hold" ? "paused" : "in_treatment", at_s });
  }
  return { ok: true, value: null };
}
