// Server and queues must not have limits of the old style (max_running, max_user_run, ...) and of the new style (max_run =
// [u:PBS_GENERIC=2], ...) at the same time (15141).

import type { AttributeTable } from "#model/attribute.ts";
import { mixesLimitStyles } from "#model/limits/limits.ts";
import { PBSE, reject } from "#model/pbse.ts";
import { QUEUE_ATTRIBUTES } from "#model/tables/queue-attributes.ts";
import { SERVER_ATTRIBUTES } from "#model/tables/server-attributes.ts";
import type { Attrs, ServerState } from "../state/state.ts";
import type { Changed } from "./change.ts";

type Style = "old" | "new";

const styles = (table: AttributeTable): ReadonlyMap<string, Style> =>
  new Map(table.rows.flatMap(({ name, limitStyle }) => (limitStyle === undefined ? [] : [[name, limitStyle] as const])));

const SERVER_STYLES = styles(SERVER_ATTRIBUTES);
const QUEUE_STYLES = styles(QUEUE_ATTRIBUTES);

/** Refuses a change that would mix the styles. changed: the changed server or queue. queue: the name of the queue; null: the server was changed. */
export function checkLimitStyles(state: ServerState, changed: Changed, queue: string | null): void {
  const own = queue === null ? SERVER_STYLES : QUEUE_STYLES;
  const touched = new Set([...changed.touched].filter((name) => changed.after[name] !== undefined).map((name) => own.get(name)));
  if (!touched.has("old") && !touched.has("new")) return;
  const found = new Set<Style>();
  collect(found, queue === null ? changed.after : state.server, SERVER_STYLES);
  for (const other of state.queues.values()) if (other.name !== queue) collect(found, other.attrs, QUEUE_STYLES);
  if (queue !== null) collect(found, changed.after, QUEUE_STYLES);
  if (mixesLimitStyles(found)) throw reject(PBSE.MIXENTLIMS);
}

function collect(found: Set<Style>, attrs: Attrs, table: ReadonlyMap<string, Style>): void {
  for (const name in attrs) {
    const style = table.get(name);
    if (style !== undefined && attrs[name] !== undefined) found.add(style);
  }
}
