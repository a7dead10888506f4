// OAR through its REST API.
//
// A1. A secret appears only in the header of a request. It is read again for each request, so that a changed file has effect at once.

import { readFileSync } from "node:fs";
import { messageOf } from "#support/caught.ts";
import type { Owner } from "../contract/backend.ts";
import { BackendError, cleanText } from "../contract/fault.ts";
import { batchesOf } from "../contract/sightings.ts";
import { isTagOf } from "../contract/tag.ts";
import { ask, type HttpAnswer } from "../shell/http.ts";
import { secretFile } from "../shell/secret-file.ts";
import {
  failureMessage,
  failureText,
  type OarJob,
  readCapacity,
  readJobsPage,
  readPosted,
  readResourcesPage,
  readVersion,
} from "./answer.ts";
import { httpKind, isOnlyGone } from "./faults.ts";
import type { OarAction, OarLink } from "./link.ts";
import { identityHeaders, type OarOptions, readSecrets } from "./options.ts";
import { checkedId, jobsBody, LIVE_STATES, RUNNING_STATES } from "./request.ts";

/** More than any cluster has. The API pages its lists unless a limit is named, and an item that moves between two pages could be missed. */
const ALL = 10_000_000;
/** Ids in one request: OAR needs about 0.1 s for the description of one job. */
const IDS_MAX = 25;
/** Requests at the same time. */
const AT_ONCE = 4;
const NOUN: Readonly<Record<OarAction, string>> = { resume: "resumptions", hold: "holds", delete: "deletions" };

type Settings = { readonly grid: string; readonly cluster: string /** user mode: the user of the grid */; readonly user: string | null };

export function oarRest(options: OarOptions & { readonly url: string }, of: Settings): OarLink {
  const rest = new Rest(options, of.user);
  const details = async (ids: readonly string[]): Promise<readonly OarJob[]> => {
    const pages = await inTurns(batchesOf(ids, IDS_MAX), (batch) =>
      rest.get(`/jobs/details.json?ids=${batch.map(checkedId).join(":")}&limit=${ALL}`),
    );
    return pages.flatMap(readJobsPage);
  };
  const act = (action: OarAction, path: string, owner: Owner | null): Promise<void> =>
    rest.act(`/jobs/${path}/${NOUN[action]}/new.json`, owner);
  return {
    probe: async () => readVersion(await rest.get("/version.json")),
    submit: async (array, owner) => readPosted(await rest.post("/jobs.json", jobsBody(array), owner)),
    live: async (known) => {
      const all = readJobsPage(await rest.get(`/jobs.json?state=${LIVE_STATES.join(",")}&limit=${ALL}`));
      const own = all.filter(({ name }) => isTagOf(name, { complex: of.grid, backend: of.cluster }));
      const unknown = own.filter(({ id }) => !known.has(id)).map(({ id }) => id);
      const described = new Map((await details(unknown)).map((job) => [job.id, job]));
      return own.map((job) => described.get(job.id) ?? job);
    },
    jobs: details,
    act: async (action, ids, owner) => void (await inTurns(ids, (id) => act(action, checkedId(id), owner))),
    actOnArray: (action, array_id, owner) => act(action, `array/${checkedId(String(array_id))}`, owner),
    capacity: async () => {
      const running = readJobsPage(await rest.get(`/jobs/details.json?state=${[...RUNNING_STATES].join(",")}&limit=${ALL}`));
      const used = running.reduce((sum, { resources }) => sum + resources, 0);
      return readCapacity(readResourcesPage(await rest.get(`/resources/details.json?limit=${ALL}`)), used);
    },
  };
}

/** Calls `ask` for each item; at most AT_ONCE calls run at the same time. Returns the results in the order of the items. */
async function inTurns<T, R>(items: readonly T[], ask: (item: T) => Promise<R>): Promise<readonly R[]> {
  const answers: R[] = [];
  for (const some of batchesOf(items, AT_ONCE)) answers.push(...(await Promise.all(some.map(ask))));
  return answers;
}

class Rest {
  readonly #options: OarOptions & { readonly url: string };
  readonly #user: string | null;

  constructor(options: OarOptions & { readonly url: string }, user: string | null) {
    this.#options = options;
    this.#user = user;
  }

  async get(path: string): Promise<string> {
    const answer = await this.#ask("GET", path, null);
    if (answer.status === 200) return answer.text;
    throw fault(answer, false);
  }

  async post(path: string, body: unknown, owner: Owner | null): Promise<string> {
    const answer = await this.#ask("POST", path, owner, body);
    if (answer.status === 201) return answer.text;
    throw fault(answer, true);
  }

  /** Asks for a change of jobs, which may have ended. */
  async act(path: string, owner: Owner | null): Promise<void> {
    const answer = await this.#ask("POST", path, owner, {});
    if (answer.status < 300 || (answer.status === 400 && isOnlyGone(failureMessage(answer.text)))) return;
    throw fault(answer, false);
  }

  #ask(method: "GET" | "POST", path: string, owner: Owner | null, body?: unknown): Promise<HttpAnswer> {
    const { url, auth, credentials, cacert, timeout_ms } = this.#options;
    const secrets = credentials === null ? new Map<string, string>() : readSecrets(secretFile(credentials));
    const headers = identityHeaders(auth, owner?.name ?? this.#user, secrets);
    return ask({
      method,
      url: `${url}${path}`,
      headers,
      timeout_ms,
      ...(body === undefined ? {} : { body }),
      ca: cacert === null ? undefined : authorities(cacert),
    });
  }
}

/** isSubmission: an answer that is no clear refusal is uncertain. */
function fault({ status, text }: HttpAnswer, isSubmission: boolean): BackendError {
  const says = failureText(text);
  const kind = httpKind(status, says);
  return new BackendError(
    { kind, text: cleanText(`OAR answered ${status}${says === "" ? "" : `: ${says}`}`) },
    { uncertain: isSubmission && kind === "transient" },
  );
}

function authorities(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new BackendError({ kind: "configuration", text: `cacert ${path}: ${messageOf(error)}` });
  }
}
