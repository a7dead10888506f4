// Requests that show and fix events. Pure.

import type { GridEvents, GridEventView, GridFix } from "#protocol/grid-messages.ts";
import type { EventRecord } from "../shapes/event-record.ts";
import type { GridCore } from "../work/core.ts";
import type { Asker, GridAnswer } from "./answers.ts";
import { badValue, mayChange, notAllowed } from "./answers.ts";
import { findCampaign } from "./status.ts";

export function listEvents(core: GridCore, { campaign, closed = false, limit, offset = 0 }: GridEvents): GridAnswer {
  if (campaign !== undefined) {
    const found = findCampaign(core, campaign);
    if ("code" in found) return found;
  }
  const all = [...core.state.events.values()].filter(
    (event) => (campaign === undefined || event.campaign === campaign) && (closed || event.state === "open"),
  );
  const page = all.slice(offset, limit === undefined ? undefined : offset + limit);
  return { ok: true, value: { items: page.map(eventView), total: all.length } };
}

const eventView = ({ at_s, task: _, ...event }: EventRecord): GridEventView => ({ ...event, time: at_s });

export function fixEvents(core: GridCore, asker: Asker, { event: id, campaign, resubmit }: GridFix): GridAnswer {
  if ((id === undefined) === (campaign === undefined)) return badValue("either an event or a campaign must be named");
  const { events } = core.state;
  if (id !== undefined && !events.has(id)) return badValue(`there is no event ${id}`);
  if (campaign !== undefined) {
    const found = findCampaign(core, campaign);
    if ("code" in found) return found;
  }
  const chosen = [...events.values()].filter(
    (event) => event.state === "open" && (event.id === id || event.campaign === (campaign ?? NaN)),
  );
  for (const event of chosen) {
    const user = event.campaign === null ? null : (core.state.campaigns.get(event.campaign)?.user ?? null);
    const refused =
      user === null
        ? asker.is_manager
          ? null
          : notAllowed("only a manager may fix events of clusters")
        : mayChange(asker, user, `event ${event.id}`);
    if (refused !== null) return refused;
  }
  for (const event of chosen) core.apply({ kind: "event-closed", id: event.id, resubmit });
  return { ok: true, value: { fixed: chosen.length } };
}
