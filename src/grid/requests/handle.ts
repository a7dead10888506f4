// Answers requests of the grid's commands. A request changes the state at once; the shell sends the answer after the change is durable. Pure.
//
// Q1. The kernel names the user of a connection. Users may change their own campaigns. Managers (root, and the user of the grid) may change all campaigns and the clusters.

import type { GridRequest } from "#protocol/grid-messages.ts";
import type { GridCore } from "../work/core.ts";
import type { Asker, GridAnswer } from "./answers.ts";
import { changeCampaigns, growCampaign, submitCampaign } from "./campaigns.ts";
import { addCluster, changeCluster, listClusters } from "./clusters.ts";
import { fixEvents, listEvents } from "./events.ts";
import { listSubscriptions, subscribe, unsubscribe } from "./notifications.ts";
import { findCampaign, listCampaigns } from "./status.ts";

export function handle(core: GridCore, asker: Asker, request: GridRequest, now_s: number): GridAnswer {
  switch (request.kind) {
    case "grid-submit":
      return submitCampaign(core, asker, request, now_s);
    case "grid-add-jobs":
      return growCampaign(core, asker, request);
    case "grid-campaigns":
      return listCampaigns(core, request, now_s);
    case "grid-jobs": {
      const found = findCampaign(core, request.campaign);
      if ("code" in found) return found;
      return { ok: true, jobs_of: request.campaign, limit: request.limit ?? PAGE, offset: request.offset ?? 0 };
    }
    case "grid-jdl": {
      const found = findCampaign(core, request.campaign);
      return "code" in found ? found : { ok: true, value: found.jdl_text };
    }
    case "grid-change":
      return changeCampaigns(core, asker, request, now_s);
    case "grid-events":
      return listEvents(core, request);
    case "grid-fix":
      return fixEvents(core, asker, request);
    case "grid-clusters":
      return listClusters(core);
    case "grid-cluster-add":
      return addCluster(core, asker, request);
    case "grid-cluster-change":
      return changeCluster(core, asker, request);
    case "grid-subscriptions":
      return listSubscriptions(core, asker);
    case "grid-subscribe":
      return subscribe(core, asker, request);
    case "grid-unsubscribe":
      return unsubscribe(core, asker, request);
    default: {
      const unreachable: never = request;
      return unreachable;
    }
  }
}

/** The number of rows of a list if the request does not give one. */
const PAGE = 1000;
