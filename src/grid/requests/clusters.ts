// Requests that show and change clusters. Pure.

import { CLUSTER_TYPES, type ClusterType } from "#backends/contract/cluster.ts";
import type { GridClusterAdd, GridClusterChange, GridClusterView } from "#protocol/grid-messages.ts";
import { readResources } from "../jdl/resources.ts";
import { isOpen, jobsOf } from "../state/grid-state.ts";
import type { GridCore } from "../work/core.ts";
import type { Asker, GridAnswer } from "./answers.ts";
import { badValue, notAllowed, wrongState } from "./answers.ts";

/** Names of clusters are parts of tags (backends/contract/tag.ts). */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,30}$/;
const CLUSTERS_MAX = 1000;
/** The property of OAR that stands for one cpu if the options of the cluster do not name one. */
const UNIT = "resource_id";

export function addCluster(core: GridCore, asker: Asker, { name, type, options, users, mapping, resources }: GridClusterAdd): GridAnswer {
  if (!asker.is_manager) return notAllowed("only a manager may add clusters");
  const { clusters } = core.state;
  if (!NAME.test(name)) return badValue(`${JSON.stringify(name)} cannot be the name of a cluster: up to 31 letters, digits, - and _`);
  if (clusters.has(name)) return wrongState(`there is a cluster ${name} already`);
  if (clusters.size >= CLUSTERS_MAX) return wrongState(`there are ${clusters.size} clusters, and may not be more`);
  if (!isType(type)) return badValue(`there is no type ${type}: one of ${CLUSTER_TYPES.join(", ")}`);
  const fault = resources === undefined ? null : readResources(resources, null);
  if (typeof fault === "string") return badValue(`resources: ${fault}`);
  const { unit = UNIT, ...others } = options;
  core.apply({
    kind: "cluster-set",
    cluster: { name, type, options: others, users, mapping, default_resources: resources ?? null, resource_unit: unit, is_enabled: true },
  });
  return { ok: true, value: { name } };
}

const isType = (text: string): text is ClusterType => CLUSTER_TYPES.some((type) => type === text);

export function changeCluster(core: GridCore, asker: Asker, { name, action }: GridClusterChange): GridAnswer {
  if (!asker.is_manager) return notAllowed("only a manager may change clusters");
  const { clusters, campaigns } = core.state;
  const cluster = clusters.get(name);
  if (cluster === undefined) return badValue(`there is no cluster ${name}`);
  if (action !== "remove") {
    core.apply({ kind: "cluster-set", cluster: { ...cluster, is_enabled: action === "enable" } });
    return { ok: true, value: null };
  }
  const user = [...campaigns.values()].find(
    (campaign) => campaign.pairs.has(name) && (isOpen(campaign) || [...jobsOf(campaign)].some(({ order }) => order.cluster === name)),
  );
  if (user !== undefined) return wrongState(`campaign ${user.id} uses the cluster ${name}: delete the campaign, or disable the cluster`);
  core.apply({ kind: "cluster-removed", name });
  return { ok: true, value: null };
}

export function listClusters({ state }: GridCore): GridAnswer {
  const items = [...state.clusters.values()].map((cluster): GridClusterView => {
    const { name, type, users, options, is_enabled } = cluster;
    const sight = state.sights.get(name);
    const live = [...state.campaigns.values()].flatMap((campaign) => [...jobsOf(campaign)].filter(({ order }) => order.cluster === name));
    return {
      name,
      type,
      state: !is_enabled ? "disabled" : sight === undefined ? "unknown" : sight.fault === null ? "up" : "down",
      resources: sight?.total ?? null,
      free: sight?.free ?? null,
      campaigns_running: live.filter(({ started_s }) => started_s !== null).length,
      campaigns_waiting: live.filter(({ started_s }) => started_s === null).length,
      users,
      options,
      text: sight?.fault ?? sight?.text ?? "",
    };
  });
  return { ok: true, value: { items, total: items.length } };
}
