// The servers of a complex with two servers, as their database shows them: each server that waits has a row in the table
// `servers`. It changes the row while it waits (seen), says there what it wants, and reads there what the leader tells it to
// do. The decisions in this file are pure.
//
// V1. The leader gives way only to a server that has shown within the time of silence that it is alive, and only to the one
//     that is configured as the primary.
// V2. An order is written before its giver ends. The take-over of the leadership checks in its own statement that there is no
//     order against it (takeFrom in writer.ts), so that a server that must stay idle never leads.
// V3. When nobody leads any more, a secondary lets a waiting primary take the lead, and waits for the time in which the primary looks several times. Otherwise the
//     secondary that has just given way, and has been started again, could take the lead back before the primary has looked.

import type { PairRole } from "#protocol/failover/pair-role.ts";
import type { Connection } from "./connection.ts";
import type { Candidate } from "./leadership.ts";
import { leavesToRival, type MomPlace, type Reach, type Round, reachText, readPlaces, readReach } from "./reach.ts";

/** stop: the server ends. idle: the server waits, and does not take over until the primary has led again. */
export type Order = "stop" | "idle";

/** A server that waits, or has waited. seen: a number that grows while it waits. */
export type WaitingRow = {
  readonly holder: string;
  readonly role: PairRole;
  readonly host: string;
  readonly pid: number;
  readonly instance: string;
  readonly seen: number;
  readonly wants_lead: boolean;
  readonly orders: Order | null;
  /** which hosts of moms it reaches, as a text (reach.ts); null: it does not try to reach any */
  readonly reach: string | null;
};

/** A row, and the time of the monotonic clock at which it was first seen in this form. */
export type WaitingSight = { readonly row: WaitingRow; readonly since_ms: number; readonly is_alive: boolean };

/** Combines a new look at the rows with earlier ones. A row is alive if it has changed since it was first seen, and within the time of silence. */
export function seenServers(
  before: ReadonlyMap<string, WaitingSight>,
  rows: readonly WaitingRow[],
  now_ms: number,
  silence_ms: number,
): ReadonlyMap<string, WaitingSight> {
  return new Map(
    rows.map((row) => {
      const last = before.get(row.holder);
      const is_same = last !== undefined && last.row.instance === row.instance && last.row.seen === row.seen;
      const since_ms = is_same ? last.since_ms : now_ms;
      const has_changed = last !== undefined && (!is_same || last.is_alive);
      return [row.holder, { row, since_ms, is_alive: has_changed && now_ms - since_ms < silence_ms }];
    }),
  );
}

/** The server for which the leader must give way (V1); null: the leader goes on. role: the role of the leader. */
export function whoTakesBack(role: PairRole, sights: Iterable<WaitingSight>): WaitingRow | null {
  if (role === "primary") return null;
  for (const { row, is_alive } of sights) if (is_alive && row.role === "primary" && row.wants_lead && row.orders === null) return row;
  return null;
}

/** The number of times that a waiting primary can look before a secondary takes the lead itself. */
const LOOKS_OF_PRIMARY = 3;

/** Whether a server lets the primary take the lead, which nobody has (V3). free_ms: for how long nobody has led. look_ms: the interval of looks */
export const leavesLead = (role: PairRole | null, rows: readonly WaitingRow[], free_ms: number, look_ms: number): boolean =>
  role === "secondary" &&
  free_ms < LOOKS_OF_PRIMARY * look_ms &&
  rows.some((row) => row.role === "primary" && row.wants_lead && row.orders === null);

/** How a server finds out which hosts of moms it reaches (reach.ts). */
export type ReachPort = {
  /** tries to reach these hosts from now on, again and again */
  ask(places: readonly MomPlace[]): void;
  /** what the latest round has found; null: no round has ended yet */
  latest(): Round | null;
  /** the hosts that both servers should try to reach. Called while this server leads. before: the present list */
  places(before: readonly MomPlace[]): readonly MomPlace[];
};

/** A server that waits: what its row says about it. reach: how it finds out what it reaches; null: the tables have no place for that yet */
export type Waiting = Candidate & {
  readonly host: string;
  readonly pid: number;
  readonly role: PairRole;
  readonly reach: ReachPort | null;
};

const NOTHING_YET: Reach = { asked: [], reached: [] };

/** Shows that a server waits. Returns the order that the leader has given it; null: none. */
export async function showWaiting(connection: Connection, me: Waiting): Promise<Order | null> {
  const [column, mark, change] = me.reach === null ? ["", "", ""] : [", reach", ", ?", "reach = excluded.reach,"];
  const [row] = await connection.all<{ readonly orders: Order | null }>(
    `INSERT INTO servers (holder, role, host, pid, instance, seen, wants_lead${column}) VALUES (?, ?, ?, ?, ?, 0, ?${mark})
     ON CONFLICT (holder) DO UPDATE SET role = excluded.role, host = excluded.host, pid = excluded.pid, seen = servers.seen + 1,
       wants_lead = excluded.wants_lead, instance = excluded.instance, ${change}
       orders = CASE WHEN servers.instance = excluded.instance OR servers.orders = 'idle' THEN servers.orders END
     RETURNING orders`,
    me.holder,
    me.role,
    me.host,
    me.pid,
    me.instance,
    me.role === "primary" ? 1 : 0,
    ...(me.reach === null ? [] : [reachText(me.reach.latest() ?? NOTHING_YET)]),
  );
  me.reach?.ask(await readMomPlaces(connection));
  return row?.orders ?? null;
}

/** Removes the row of a server that waits no longer. */
export const leaveWaiting = (connection: Connection, { holder, instance }: Candidate): Promise<unknown> =>
  connection.all("DELETE FROM servers WHERE holder = ? AND instance = ?", holder, instance);

/** has_reach: whether the tables have a place for what the servers reach */
export const readWaiting = (connection: Connection, has_reach = true): Promise<WaitingRow[]> =>
  connection.all<WaitingRow>(
    `SELECT holder, role, host, pid, instance, seen, wants_lead, orders, ${has_reach ? "reach" : "NULL AS reach"} FROM servers ORDER BY holder`,
  );

export async function readMomPlaces(connection: Connection): Promise<readonly MomPlace[]> {
  const [row] = await connection.all<{ readonly places: string }>("SELECT places FROM mom_places");
  return readPlaces(row?.places ?? null);
}

/** Writes the hosts that both servers try to reach, unless the term has ended. */
export const writeMomPlaces = (connection: Connection, places: string, term: number): Promise<unknown> =>
  connection.all("UPDATE mom_places SET places = ? WHERE EXISTS (SELECT 1 FROM leader WHERE term = ?)", places, term);

/** Nobody leads, and this server may take the lead: whether it leaves the lead to another server (V3, reach.ts H5). sights: the other servers that wait or have waited */
export function leavesFree(
  me: Waiting,
  sights: readonly WaitingSight[],
  times: { readonly free_ms: number; readonly look_ms: number; readonly silence_ms: number },
): boolean {
  const rows = sights.map(({ row }) => row);
  if (leavesLead(me.role, rows, times.free_ms, times.look_ms)) return true;
  if (me.reach === null) return false;
  const rivals = sights.filter(({ row }) => row.orders === null).map(({ row, is_alive }) => ({ reach: readReach(row.reach), is_alive }));
  return leavesToRival(me.reach.latest(), rivals, times);
}
