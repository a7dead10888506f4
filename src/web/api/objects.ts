// Answers about objects: a page of a list, one object, and why a job waits.

import { parseJobId } from "#model/job-id.ts";
import { PBSE } from "#model/pbse.ts";
import type { Request, StatusItem, StatusRequest } from "#protocol/messages.ts";
import type { Reply } from "#protocol/wire/reply.ts";
import { JOBS, type Kind } from "./kinds.ts";
import { idsRequest, type Listing, meets, pageOf, pageRequest, selectRequest } from "./listing.ts";
import { type Problem, problem, refusalProblem } from "./problem.ts";
import { type Shown, shown } from "./shown.ts";

/** The longest name of an object. */
const ID_MAX = 255;

/** Sends a request to the server. onPart gets the items of a status. */
export type Ask = (request: Request, onPart?: (items: readonly unknown[]) => void) => Promise<Reply>;

export type Page = { readonly items: readonly Shown[]; readonly next_cursor: string | null };

/** Asks for one page of a list. */
export async function listObjects(ask: Ask, listing: Listing): Promise<Page | Problem> {
  const found = await idsOf(ask, listing);
  if ("status" in found) return found;
  const { ids, next_cursor } = pageOf(listing, found.ids);
  if (ids.length === 0) return { items: [], next_cursor };
  const answer = await statusOf(ask, pageRequest(listing, ids));
  if ("status" in answer) return answer;
  // An object that has gone since the ids were read comes as an error, and is left out.
  return { items: answer.items.flatMap((item) => ("attrs" in item ? [shown(listing.kind.table, item)] : [])), next_cursor };
}

async function idsOf(ask: Ask, listing: Listing): Promise<{ readonly ids: readonly string[] } | Problem> {
  if (listing.kind === JOBS) {
    const reply = await ask(selectRequest(listing));
    return reply.ok ? { ids: reply.value as readonly string[] } : filterProblem(refusalProblem(reply));
  }
  const answer = await statusOf(ask, idsRequest(listing));
  if ("status" in answer) return answer;
  return { ids: answer.items.filter((item) => meets(listing.filters, item)).map(({ id }) => id) };
}

/** A filter that names an unknown queue is a fault of the query: the list itself exists. */
const filterProblem = (refusal: Problem): Problem => (refusal.status === 404 ? { ...refusal, status: 400, title: "Bad Request" } : refusal);

/** Asks for one object. A finished job is shown as well, if the server keeps a history. */
export async function oneObject(ask: Ask, kind: Kind, id: string, fields: readonly string[] | null): Promise<Shown | Problem> {
  if (id.length > ID_MAX || /\p{Cc}/u.test(id) || (kind === JOBS && parseJobId(id) === null))
    return problem(404, `that is not the name of a ${kind.noun}`);
  const request: StatusRequest = { kind: "status", object: kind.object, ids: [id], ...(fields === null ? {} : { attrs: fields }) };
  let answer = await statusOf(ask, kind === JOBS ? { ...request, history: "with" } : request);
  if ("status" in answer && answer.pbs_code === PBSE.JOBHISTNOTSET) answer = await statusOf(ask, request);
  if ("status" in answer) return answer;
  const [item] = answer.items;
  if (item === undefined) return problem(404, `there is no ${kind.noun} ${id}`);
  return "attrs" in item ? shown(kind.table, item) : refusalProblem(item);
}

/** Asks the job's scheduler why the job waits. The value is an Explanation (protocol/explanation.ts). */
export async function explanationOf(ask: Ask, job: string): Promise<{ readonly value: unknown } | Problem> {
  if (parseJobId(job) === null) return problem(404, "that is not the id of a job");
  const reply = await ask({ kind: "explain-job", job });
  return reply.ok ? { value: reply.value } : refusalProblem(reply);
}

async function statusOf(ask: Ask, request: StatusRequest): Promise<{ readonly items: readonly StatusItem[] } | Problem> {
  const items: StatusItem[] = [];
  const reply = await ask(request, (part) => void items.push(...(part as readonly StatusItem[])));
  return reply.ok ? { items } : refusalProblem(reply);
}
