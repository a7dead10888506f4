// Opens the adapter of a cluster on which jobs of campaigns run. The grid (src/grid) calls it once for each cluster.

import type { ClusterAdapter, ClusterSettings, ClusterType } from "./contract/cluster.ts";
import { BackendError } from "./contract/fault.ts";
import { openOarCluster } from "./oar/cluster.ts";
import { openPbsCluster } from "./pbs/cluster.ts";
import { openSlurmCluster } from "./slurm/cluster.ts";

const OPEN: Readonly<Partial<Record<ClusterType, (settings: ClusterSettings) => ClusterAdapter>>> = {
  partita: openPbsCluster,
  pbs: openPbsCluster,
  oar: openOarCluster,
  slurm: openSlurmCluster,
};

/** Throws a BackendError of the kind `configuration` if the options cannot be right. Does not ask the cluster itself: probe() tells whether it answers. */
export function openCluster(settings: ClusterSettings): ClusterAdapter {
  const open = OPEN[settings.type];
  if (open === undefined)
    throw new BackendError({ kind: "configuration", text: `clusters of type ${settings.type} are not supported yet` });
  return open(settings);
}
