// Requests about notifications (events/judas.ts). Pure.

import type { GridSubscribe, GridSubscriptionView, GridUnsubscribe } from "#protocol/grid-messages.ts";
import { addressShown, mailFault, webhookFault } from "../events/judas.ts";
import { keyOf } from "../state/grid-state.ts";
import type { GridCore } from "../work/core.ts";
import type { Asker, GridAnswer } from "./answers.ts";
import { badValue, wrongState } from "./answers.ts";

/** Subscriptions of one user, and of all users. */
const USER_MAX = 20;
const ALL_MAX = 10_000;

export function listSubscriptions({ state, user }: GridCore, asker: Asker): GridAnswer {
  const own = user ?? asker.name;
  const items = [...state.subscriptions.values()]
    .filter((each) => asker.is_manager || each.user === own)
    .map((each): GridSubscriptionView => {
      const { user: of, method, address, severity } = each;
      return { user: of, method, address: of === own ? address : addressShown({ method, address }), severity };
    });
  return { ok: true, value: { items, total: items.length } };
}

export function subscribe(core: GridCore, asker: Asker, { method, address, severity }: GridSubscribe): GridAnswer {
  const { subscriptions, counters } = core.state;
  const user = core.user ?? asker.name;
  const fault = method === "mail" ? mailFault(address) : webhookFault(address, core.settings.webhooks);
  if (fault !== null) return badValue(fault);
  const before = subscriptions.get(keyOf({ user, method, address }));
  if (before === undefined) {
    const own = [...subscriptions.values()].filter((each) => each.user === user).length;
    if (own >= USER_MAX) return wrongState(`${user} has ${own} subscriptions, and may not have more`);
    if (subscriptions.size >= ALL_MAX) return wrongState(`there are ${subscriptions.size} subscriptions, and may not be more`);
  }
  const next_event = before?.next_event ?? counters.event;
  core.apply({ kind: "subscribed", subscription: { user, is_manager: asker.is_manager, method, address, severity, next_event } });
  return { ok: true, value: { method, address, severity } };
}

export function unsubscribe(core: GridCore, asker: Asker, { method, address }: GridUnsubscribe): GridAnswer {
  const key = keyOf({ user: core.user ?? asker.name, method, address });
  if (!core.state.subscriptions.has(key)) return badValue(`there is no subscription of ${method} to ${address}`);
  core.apply({ kind: "unsubscribed", key });
  return { ok: true, value: null };
}
