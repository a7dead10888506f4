// Makes a table of the run limits of a server or queue, hard or soft, from limits of the old and the new style
// (docs/reference/attributes.md 2 and 4). The styles differ only in names: max_running corresponds to [o:PBS_ALL], and
// max_user_run to [u:PBS_GENERIC]. The server refuses a mixture.

export type EntityKind = "g" | "p" | "o" | "u";
/** The order in which limits are checked (docs/reference/scheduler.md 5). */
export const ENTITY_KINDS: readonly EntityKind[] = ["g", "p", "o", "u"];

/** Limits by entity (`u:alice`, `u:PBS_GENERIC`, `o:PBS_ALL`). run: for numbers of jobs. resources: for amounts, by resource. */
export type LimitTable = {
  readonly run: ReadonlyMap<string, number>;
  readonly resources: ReadonlyMap<string, ReadonlyMap<string, number>>;
};

export const NO_LIMITS: LimitTable = { run: new Map(), resources: new Map() };
const GENERIC = "PBS_GENERIC";
const ALL = "o:PBS_ALL";

/** Attributes that are limits on running jobs. */
export const RUN_LIMIT_ATTRS: readonly string[] = ["", "_soft"].flatMap((soft) => [
  `max_run${soft}`,
  `max_run_res${soft}`,
  `max_user_run${soft}`,
  `max_group_run${soft}`,
  `max_user_res${soft}`,
  `max_group_res${soft}`,
  ...(soft === "" ? ["max_running"] : []),
]);

type Attrs = { readonly [name: string]: unknown };
/** Returns the amount that a value of a resource means; null: the value is not an amount. */
export type AmountOf = (resource: string, value: unknown) => number | null;

/** Makes the table. soft: from the soft limits (max_run_soft and related attributes). */
export function limitTable(attrs: Attrs, amountOf: AmountOf, soft = false): LimitTable {
  const suffix = soft ? "_soft" : "";
  const run = new Map<string, number>();
  const resources = new Map<string, Map<string, number>>();
  const setRun = (key: string, value: unknown): void => {
    if (typeof value === "number") run.set(key, value);
  };
  const setResource = (resource: string, key: string, value: unknown): void => {
    const amount = amountOf(resource, value);
    if (amount === null) return;
    let table = resources.get(resource);
    if (table === undefined) resources.set(resource, (table = new Map()));
    table.set(key, amount);
  };
  for (const [key, value] of entriesOf(attrs[`max_run${suffix}`])) setRun(key, value);
  for (const [resource, table] of entriesOf(attrs[`max_run_res${suffix}`]))
    for (const [key, value] of entriesOf(table)) setResource(resource, key, value);
  if (!soft) setRun(ALL, attrs["max_running"]);
  setRun(`u:${GENERIC}`, attrs[`max_user_run${suffix}`]);
  setRun(`g:${GENERIC}`, attrs[`max_group_run${suffix}`]);
  for (const [resource, value] of entriesOf(attrs[`max_user_res${suffix}`])) setResource(resource, `u:${GENERIC}`, value);
  for (const [resource, value] of entriesOf(attrs[`max_group_res${suffix}`])) setResource(resource, `g:${GENERIC}`, value);
  return run.size === 0 && resources.size === 0 ? NO_LIMITS : { run, resources };
}

/** The limit that applies to an entity: its own, or else the generic one. Returns null if there is no limit. */
export function limitOf(
  limits: ReadonlyMap<string, number>,
  kind: EntityKind,
  entity: string,
): { readonly limit: number; readonly generic: boolean } | null {
  if (kind === "o") {
    const limit = limits.get(ALL);
    return limit === undefined ? null : { limit, generic: true };
  }
  const own = limits.get(`${kind}:${entity}`);
  if (own !== undefined) return { limit: own, generic: false };
  const limit = limits.get(`${kind}:${GENERIC}`);
  return limit === undefined ? null : { limit, generic: true };
}

/** The kinds of entities and the resources that have limits. */
export function lookedAt(limits: LimitTable): { readonly kinds: ReadonlySet<string>; readonly resources: readonly string[] } {
  const kinds = new Set([...limits.run.keys()].map((key) => key.slice(0, 1)));
  for (const table of limits.resources.values()) for (const key of table.keys()) kinds.add(key.slice(0, 1));
  return { kinds, resources: [...limits.resources.keys()] };
}

function entriesOf(value: unknown): [string, unknown][] {
  return typeof value === "object" && value !== null ? Object.entries(value) : [];
}
