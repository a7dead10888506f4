// Which hosts of moms the two servers of a complex reach. The server that leads may reach the database and yet none of its hosts, while the server that waits
// reaches them. Then the leader gives up its lead. The servers tell each other through the database which hosts they reach. Pure.
//
// H1. The leader chooses the hosts that both servers try to reach. The list changes slowly: a host does not leave it because its mom is no longer connected,
//     because that is what a cut does to the list of connected moms.
// H2. Only hosts that both servers have tried count. A server reaches clearly more hosts than the other one if the other one reaches none, or if the difference is more
//     than half of all of them. One broken host, or a few, are no reason for a change of the leader.
// H3. The leader gives up its lead when the other server has reached clearly more in at least two successive rounds, for the time `mom_silence`.
// H4. A leader that has led for less than the time `settle` goes on. A primary that waits and has reached clearly fewer hosts than the leader does not get the lead back
//     before `settle` has passed without that. So a link that comes and goes changes the leader at most once in this time.
// H5. A server that finds that nobody leads leaves the lead for a while to a server that reaches clearly more: the former leader, which has been started again, must
//     not be faster than the server to which it has given way.

/** Where a mom accepts connections. */
export type MomPlace = { readonly host: string; readonly address: string; readonly port: number };

/** The hosts that a server has tried to reach, and those of them that it has reached. */
export type Reach = { readonly asked: readonly string[]; readonly reached: readonly string[] };

/** What a server has found in one round. begun_ms: when the round began, on the monotonic clock */
export type Round = Reach & { readonly begun_ms: number };

/** How many of the hosts that both servers have tried (all) each of them reaches. */
export type Comparison = { readonly all: number; readonly own: number; readonly other: number };

/** Compares what two servers reach (H2). null: a server that has found out nothing yet. */
export function compareReach(own: Reach | null, other: Reach | null): Comparison {
  const asked = new Set(other?.asked ?? []);
  const both = new Set((own?.asked ?? []).filter((host) => asked.has(host)));
  const count = (reach: Reach | null): number => new Set((reach?.reached ?? []).filter((host) => both.has(host))).size;
  return { all: both.size, own: count(own), other: count(other) };
}

/** Whether a server that reaches `more` of the hosts reaches clearly more than one that reaches `fewer` (H2). */
const isClearlyMore = (more: number, fewer: number, all: number): boolean => more > fewer && (fewer === 0 || 2 * (more - fewer) > all);

export const otherReachesMore = ({ all, own, other }: Comparison): boolean => isClearlyMore(other, own, all);
const ownReachesMore = ({ all, own, other }: Comparison): boolean => isClearlyMore(own, other, all);

/**
 * What the leader remembers. fewer: the successive rounds in which it has reached clearly fewer hosts than the other server: their number, when the first one began and
 * when the last one began; null: there are none. ahead_ms: when it last reached clearly more than the other server; null: it never did while it has led.
 */
export type Standing = {
  readonly fewer: { readonly rounds: number; readonly since_ms: number; readonly last_ms: number } | null;
  readonly ahead_ms: number | null;
};

export const STANDING_AT_FIRST: Standing = { fewer: null, ahead_ms: null };

/** Notes what the leader and the server that waits have found. other null: no server waits, or it says nothing. */
export function noteReach({ fewer, ahead_ms }: Standing, own: Round | null, other: Reach | null, now_ms: number): Standing {
  const found = compareReach(own, other);
  const next_ahead_ms = ownReachesMore(found) ? now_ms : ahead_ms;
  if (own === null || !otherReachesMore(found)) return { fewer: null, ahead_ms: next_ahead_ms };
  if (fewer === null) return { fewer: { rounds: 1, since_ms: own.begun_ms, last_ms: own.begun_ms }, ahead_ms };
  if (own.begun_ms === fewer.last_ms) return { fewer, ahead_ms };
  return { fewer: { rounds: fewer.rounds + 1, since_ms: fewer.since_ms, last_ms: own.begun_ms }, ahead_ms };
}

/** mom_silence_ms, settle_ms: see H3 and H4 */
export type ReachLimits = { readonly mom_silence_ms: number; readonly settle_ms: number };

const ROUNDS_LEAST = 2;

/** Whether the leader gives up its lead (H3, H4). led_ms: since when it leads */
export const givesUp = ({ fewer }: Standing, led_ms: number, now_ms: number, { mom_silence_ms, settle_ms }: ReachLimits): boolean =>
  fewer !== null && fewer.rounds >= ROUNDS_LEAST && now_ms - fewer.since_ms >= mom_silence_ms && now_ms - led_ms >= settle_ms;

/**
 * Whether a primary that waits may have the lead back (H4). own: what the leader reaches; primary: what the primary reaches; null: it does not say so, because its
 * release does not know this or because it is told not to try. trying: whether the leader tries to reach any hosts.
 */
export function mayHaveBack(
  { ahead_ms }: Standing,
  { own, primary, trying }: { readonly own: Round | null; readonly primary: Reach | null; readonly trying: boolean },
  now_ms: number,
  { settle_ms }: ReachLimits,
): boolean {
  if (primary === null || !trying) return true;
  if (own === null || primary.asked.length === 0) return false;
  return ahead_ms === null || now_ms - ahead_ms >= settle_ms;
}

/** A server that waits, as another one sees it that finds that nobody leads. is_alive: it has shown so since the first look */
export type Rival = { readonly reach: Reach | null; readonly is_alive: boolean };

/** The number of looks for which a server leaves the lead to another one that may have ended. */
const LOOKS_FOR_RIVAL = 3;

/** Whether a server leaves the lead, which nobody has, to one that reaches clearly more (H5). own null: it has found out nothing yet. free_ms: for how long nobody has led */
export function leavesToRival(
  own: Reach | null,
  rivals: readonly Rival[],
  { free_ms, look_ms, silence_ms }: { readonly free_ms: number; readonly look_ms: number; readonly silence_ms: number },
): boolean {
  return rivals.some(({ reach, is_alive }) => {
    if (reach === null || free_ms >= (is_alive ? silence_ms : LOOKS_FOR_RIVAL * look_ms)) return false;
    return own === null ? reach.reached.length > 0 : otherReachesMore(compareReach(own, reach));
  });
}

/**
 * Chooses the hosts that both servers try to reach (H1). before: the present list. connected: the moms that are connected to the leader. isKnown: whether a host has
 * vnodes. lost: hosts that neither server has reached for a long time; they leave the list when there are others. most: the length of the list
 */
export function nextPlaces(
  before: readonly MomPlace[],
  connected: readonly MomPlace[],
  { isKnown, lost, most }: { isKnown(host: string): boolean; readonly lost: ReadonlySet<string>; readonly most: number },
): readonly MomPlace[] {
  const now = new Map(connected.map((place) => [place.host, place]));
  const kept = before.filter(({ host }) => isKnown(host)).map((place) => now.get(place.host) ?? place);
  const others = connected.filter(({ host }) => !kept.some((place) => place.host === host));
  const spare = Math.max(0, kept.length + others.length - most);
  const leaving = new Set(
    kept
      .filter(({ host }) => lost.has(host) && !now.has(host))
      .map(({ host }) => host)
      .slice(0, spare),
  );
  return [...kept.filter(({ host }) => !leaving.has(host)), ...others].slice(0, most);
}

/** Notes since when neither server has reached a host. Returns the hosts for which that has lasted for the time `settle`. */
export function lostHosts(
  since_ms: Map<string, number>,
  own: Round | null,
  other: Reach | null,
  now_ms: number,
  settle_ms: number,
): Set<string> {
  const reached = new Set([...(own?.reached ?? []), ...(other?.reached ?? [])]);
  const missed = (own?.asked ?? []).filter((host) => !reached.has(host));
  for (const host of since_ms.keys()) if (!missed.includes(host)) since_ms.delete(host);
  for (const host of missed) if (!since_ms.has(host)) since_ms.set(host, now_ms);
  return new Set([...since_ms].filter(([, since]) => now_ms - since >= settle_ms).map(([host]) => host));
}

const NAMES_MAX = 4096;

/** The text of what a server reaches, for its row in the database. null: it does not try */
export const reachText = (reach: Reach): string => JSON.stringify([reach.asked, reach.reached]);

/** Reads the text of another server. Returns null if the server says nothing, or nothing that can be read. */
export function readReach(text: string | null): Reach | null {
  const [asked, reached] = listsIn(text);
  return asked === undefined || reached === undefined ? null : { asked: asked.filter(isText), reached: reached.filter(isText) };
}

export const placesText = (places: readonly MomPlace[]): string =>
  JSON.stringify(places.map(({ host, address, port }) => [host, address, port]));

/** Reads the list of hosts in the database. What cannot be read is left out. */
export function readPlaces(text: string | null): readonly MomPlace[] {
  return listsIn(text).flatMap(([host, address, port]) =>
    isText(host) && isText(address) && typeof port === "number" && Number.isInteger(port) && port > 0 && port < 65_536
      ? [{ host, address, port }]
      : [],
  );
}

const isText = (value: unknown): value is string => typeof value === "string";

/** The lists in a text of JSON; empty if the text is something else. */
function listsIn(text: string | null): readonly (readonly unknown[])[] {
  try {
    const value: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(value) ? value.filter((each) => Array.isArray(each)).slice(0, NAMES_MAX) : [];
  } catch {
    return [];
  }
}
