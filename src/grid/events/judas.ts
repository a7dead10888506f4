// Judas: which events a subscription is told, and the text of a notification. The shell (../shell/notifier.ts) delivers it. Pure.
//
// U1. A subscriber is told about own campaigns; a manager also about clusters. Events of the class log are told to nobody: failed notifications are among them.
// U2. Events that happened before the subscription are not told.
// U3. A notification has at most EVENTS_MAX events, the most severe first, and the number of the others: a campaign with a thousand failures makes one mail.

import type { EventRecord, Subscription } from "../shapes/event-record.ts";

const EVENTS_MAX = 15;
const SUBJECT_CHARS_MAX = 120;

const SEVERITIES = ["low", "medium", "high"] as const;
type Severity = (typeof SEVERITIES)[number];

/** What judas sees of the state of the grid. */
export type Watched = {
  readonly campaigns: ReadonlyMap<number, { readonly user: string; readonly jdl: { readonly name: string } }>;
  readonly events: ReadonlyMap<number, EventRecord>;
  /** the number of the next event */
  readonly next_event: number;
};

/** A notification. upto: the number of the first event that it does not cover. more: how many events it does not show. */
export type Letter = { readonly upto: number; readonly events: readonly EventRecord[]; readonly more: number };

/** high: a campaign pauses on a cluster, or a cluster does not answer. medium: a job has failed. low: everything else, such as the end of a campaign. */
function severityOf({ class: kind }: Pick<EventRecord, "class">): Severity {
  if (kind === "campaign" || kind === "cluster") return "high";
  return kind === "job" ? "medium" : "low";
}

const weightOf = (event: Pick<EventRecord, "class">): number => SEVERITIES.indexOf(severityOf(event));

/** Returns what a subscription is to be told; without events: nothing, but the events up to `upto` need not be looked at again. */
export function letterFor({ user, is_manager, severity, next_event }: Subscription, watched: Watched): Letter {
  const chosen: EventRecord[] = [];
  for (let id = next_event; id < watched.next_event; id++) {
    const event = watched.events.get(id);
    if (event === undefined || event.class === "log" || weightOf(event) < SEVERITIES.indexOf(severity)) continue;
    const isOwn = event.campaign !== null && watched.campaigns.get(event.campaign)?.user === user;
    if (isOwn || (event.class === "cluster" && is_manager)) chosen.push(event);
  }
  chosen.sort((a, b) => weightOf(b) - weightOf(a) || a.id - b.id);
  return { upto: watched.next_event, events: chosen.slice(0, EVENTS_MAX), more: Math.max(0, chosen.length - EVENTS_MAX) };
}

/** Returns the subject and the body of a mail. timeText: writes epoch seconds. */
export function mailText(
  { events, more }: Letter,
  { campaigns }: Pick<Watched, "campaigns">,
  timeText: (epoch_s: number) => string,
): { readonly subject: string; readonly body: string } {
  const [first] = events;
  const count = events.length + more;
  const what = first === undefined || count > 1 ? `${count} events` : `${first.code}${placeOf(first, campaigns)}`;
  const lines = events.flatMap((event) => [
    oneLine(`${timeText(event.at_s)}  ${severityOf(event)}  ${event.code}${placeOf(event, campaigns)}`),
    `    ${oneLine(event.message)}`,
  ]);
  const rest = more === 0 ? [] : ["", `${more} more events; gridevents shows them.`];
  return { subject: `PBS GRID ${oneLine(what)}`.slice(0, SUBJECT_CHARS_MAX), body: [...lines, ...rest, ""].join("\n") };
}

/** Returns what is posted to a webhook, as an object for JSON. */
export function webhookBody({ events, more }: Letter, { campaigns }: Pick<Watched, "campaigns">, user: string): object {
  const shown = events.map(({ id, at_s, class: kind, code, campaign, cluster, job, message, state, ...event }) => ({
    ...{ id, time: at_s, severity: severityOf({ class: kind }), class: kind, code, state, campaign },
    campaign_name: campaign === null ? null : (campaigns.get(campaign)?.jdl.name ?? null),
    ...{ cluster, job, task: event.task, message },
  }));
  return { user, events: shown, more };
}

function placeOf({ campaign, cluster, job }: EventRecord, campaigns: Watched["campaigns"]): string {
  const name = campaign === null ? undefined : campaigns.get(campaign)?.jdl.name;
  const of = campaign === null ? "" : ` campaign ${campaign}${name === undefined ? "" : ` (${name})`}`;
  return `${of}${job === null ? "" : ` job ${job}`}${cluster === null ? "" : ` on ${cluster}`}`;
}

/** A line of a mail: a message or a name may have the words of a cluster or a user, with any characters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed
const oneLine = (text: string): string => text.replace(/[\u0000-\u001f\u007f]+/g, " ");

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const ADDRESS = /^(?!-)[^\s,;<>|&`$()\u0000-\u001f\u007f]{1,254}$/;

/** Returns why mail cannot be sent to an address; null: it can. */
export const mailFault = (address: string): string | null =>
  ADDRESS.test(address) ? null : `${JSON.stringify(address)} is not a mail address`;

/** Returns why notifications cannot be posted to a URL; null: they can. A URL is allowed if it has the origin of an allowed one, and a path that is equal or below. */
export function webhookFault(text: string, allowed: readonly string[]): string | null {
  if (!URL.canParse(text)) return "the webhook is not a URL";
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") return "the webhook has a user or a password, which URLs of webhooks may not have";
  if (url.hash !== "") return "the webhook has a fragment";
  const isAllowed = allowed.some((prefix) => {
    const { origin, pathname } = new URL(prefix);
    const folder = pathname.endsWith("/") ? pathname : `${pathname}/`;
    return url.origin === origin && (url.pathname === pathname || url.pathname.startsWith(folder));
  });
  return isAllowed
    ? null
    : `webhooks of ${url.origin} are not allowed there: the administrator lists the allowed URLs in grid_priv/grid.conf (webhooks)`;
}

/** Where a subscription sends, for logs and other users: the path of a webhook is often a secret. */
export const addressShown = ({ method, address }: Pick<Subscription, "method" | "address">): string =>
  method === "mail" || !URL.canParse(address) ? address : `${new URL(address).origin}/...`;
