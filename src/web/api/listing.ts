// Lists of objects: the query of a request, the filters, and pages by cursor.
//
// L1. A page begins after the id that the cursor names, in an order that does not depend on the other objects. Objects that come or go between two requests
//     therefore never shift a page: every object that exists all the time is listed exactly once.
// L2. The server is asked first for the ids alone, and then for the attributes of one page.

import { parseJobId } from "#model/job-id.ts";
import type { SelectJobsRequest, StatusItem, StatusRequest } from "#protocol/messages.ts";
import { JOBS, type Kind } from "./kinds.ts";
import { type Problem, problem } from "./problem.ts";

const LIMIT_DEFAULT = 100;
const LIMIT_MAX = 1000;
export const TEXT_MAX = 1024;

const OPERATORS = ["eq", "ne", "ge", "gt", "le", "lt"] as const;
type Operator = (typeof OPERATORS)[number];
export type Filter = { readonly name: string; readonly resource?: string; readonly op: Operator; readonly value: string };

export type Listing = {
  readonly kind: Kind;
  /** the attributes to show; null: all */
  readonly fields: readonly string[] | null;
  readonly filters: readonly Filter[];
  readonly limit: number;
  readonly cursor: string | null;
  readonly history: "with" | "only" | null;
};

/** Names of query parameters that are not filters. */
const RESERVED: ReadonlySet<string> = new Set(["fields", "limit", "cursor", "history"]);

type Query = readonly (readonly [name: string, value: string])[];

/** Reads the query of a list. */
export function parseListing(kind: Kind, query: Query): Listing | Problem {
  const fault = queryFault(query);
  if (fault !== null) return fault;
  const value = (name: string): string | null => query.find(([each]) => each === name)?.[1] ?? null;
  const fields = parseFields(kind, value("fields"));
  if (fields !== null && "status" in fields) return fields;
  const limit = Number(value("limit") ?? LIMIT_DEFAULT);
  if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT_MAX) return problem(400, `limit must be a number from 1 to ${LIMIT_MAX}`);
  const cursor = value("cursor");
  if (cursor === "" || (cursor !== null && kind === JOBS && parseJobId(cursor) === null))
    return problem(400, "cursor must be the next_cursor of an answer");
  const history = value("history");
  if (history !== null && (kind !== JOBS || (history !== "with" && history !== "only")))
    return problem(400, "history must be with or only, and only jobs have it");
  const filters: Filter[] = [];
  for (const [name, text] of query) {
    if (RESERVED.has(name)) continue;
    const filter = parseFilter(kind, name, text);
    if ("status" in filter) return filter;
    filters.push(filter);
  }
  return { kind, fields, filters, limit, cursor, history };
}

function queryFault(query: Query): Problem | null {
  const names = new Set<string>();
  for (const [name, value] of query) {
    if (value.length > TEXT_MAX || name.length > TEXT_MAX) return problem(400, `a query parameter has more than ${TEXT_MAX} characters`);
    if (names.has(name)) return problem(400, `the query parameter ${name} is given twice`);
    names.add(name);
  }
  return null;
}

/** Reads `fields=a,b`. Returns null if there is no such parameter: all attributes are shown. */
export function parseFields(kind: Kind, text: string | null): readonly string[] | null | Problem {
  if (text === null) return null;
  const names = text.split(",").map((name) => name.trim());
  const unknown = names.find((name) => kind.table.byName(name) === undefined);
  return unknown === undefined ? names : problem(400, `a ${kind.noun} has no attribute "${unknown}" (fields)`);
}

/** Reads `queue=workq`, `Priority=ge:5` or `Resource_List.ncpus=4`; `user=anna` stands for the owner of a job. */
function parseFilter(kind: Kind, name: string, text: string): Filter | Problem {
  const [, word, rest] = /^([a-z]{2}):(.*)$/s.exec(text) ?? [];
  const op = OPERATORS.find((each) => each === word) ?? null;
  const value = op === null ? text : (rest ?? "");
  if (kind === JOBS && name === "user") return { name: "User_List", op: op ?? "eq", value };
  const point = name.indexOf(".");
  const [attribute, resource] = point < 0 ? [name, null] : [name.slice(0, point), name.slice(point + 1)];
  const def = kind.table.byName(attribute);
  if (def === undefined || def.read === "none") return problem(400, `a ${kind.noun} has no attribute "${attribute}" to filter by`);
  if ((def.type === "resource_list") !== (resource !== null))
    return problem(400, resource === null ? `${def.name} needs a resource: ${def.name}.ncpus=4` : `${def.name} has no resources`);
  if (kind !== JOBS && op !== null && op !== "eq" && op !== "ne") return problem(400, `only jobs can be compared with ${op}`);
  return { name: def.name, op: op ?? "eq", value, ...(resource === null ? {} : { resource }) };
}

/** The request for the ids of jobs. States and the queue are no criteria of qselect, but parameters of their own. */
export function selectRequest({ filters, history }: Listing): SelectJobsRequest {
  const isEqual = (name: string) => (filter: Filter) => filter.name === name && filter.op === "eq";
  const [states, queue] = [filters.find(isEqual("job_state")), filters.find(isEqual("queue"))];
  return {
    kind: "select-jobs",
    criteria: filters.filter((filter) => filter !== states && filter !== queue),
    ...(states === undefined ? {} : { states: states.value.replaceAll(",", "") }),
    ...(queue === undefined ? {} : { destination: queue.value }),
    ...(history === null ? {} : { history }),
  };
}

/** The request for the ids of other objects: their status with the attributes of the filters. */
export const idsRequest = ({ kind, filters }: Listing): StatusRequest => ({
  kind: "status",
  object: kind.object,
  ids: [],
  attrs: filters.map(({ name }) => name),
});

/** Whether an object meets all filters. An object without the attribute meets only `ne`, as with qselect. */
export function meets(filters: readonly Filter[], item: StatusItem): boolean {
  if (!("attrs" in item)) return false;
  return filters.every(({ name, resource, op, value }) => {
    const found = item.attrs[name];
    const text = resource === undefined ? found : isResources(found) ? found[resource] : undefined;
    const equal = typeof text === "string" ? text === value : Array.isArray(text) && text.includes(value);
    return equal === (op === "eq");
  });
}

type Resources = { readonly [resource: string]: string | readonly string[] };
const isResources = (value: string | readonly string[] | Resources | undefined): value is Resources =>
  typeof value === "object" && !Array.isArray(value);

/** The ids of the page, and the cursor of the next one; null: the page is the last one. */
export function pageOf(
  { kind, limit, cursor }: Listing,
  ids: readonly string[],
): { readonly ids: readonly string[]; readonly next_cursor: string | null } {
  const compare = kind === JOBS ? compareJobs : compareNames;
  const sorted = [...ids].sort(compare);
  const rest = cursor === null ? sorted : sorted.filter((id) => compare(id, cursor) > 0);
  const page = rest.slice(0, limit);
  return { ids: page, next_cursor: rest.length > page.length ? (page.at(-1) ?? null) : null };
}

/** The request for the attributes of a page. A page without ids needs no request: without ids, the server would show all objects. */
export const pageRequest = ({ kind, fields, history }: Listing, ids: readonly string[]): StatusRequest => ({
  kind: "status",
  object: kind.object,
  ids,
  ...(fields === null ? {} : { attrs: fields }),
  ...(history === null ? {} : { history }),
});

const compareNames = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Orders jobs by number, then by index. An array comes before its subjobs. */
function compareJobs(a: string, b: string): number {
  const [first, second] = [parseJobId(a), parseJobId(b)];
  if (first === null || second === null) return compareNames(a, b);
  const index = (id: typeof first): number => (id.kind === "subjob" ? id.index : -1);
  return first.seq - second.seq || index(first) - index(second) || compareNames(a, b);
}
