// Runners as servers of OpenStack: one server for each runner, made by nova with user data that boots the runner.
//
// I1. Before servers of a tag that may exist are made, the servers of the tag are listed, and only those that are missing are made. Of two servers for one
//     runner the younger is deleted.
// I2. Servers that have shut down or failed are deleted when they are listed; the caller sees them once.
// I3. No more servers are asked for than the quota has room for, and at most max_spawns are being built at the same time.

import { readFileSync } from "node:fs";
import { mustGet } from "#support/assert.ts";
import type { Backend, RunnerOrder, RunnerSighting } from "../contract/backend.ts";
import { BackendError } from "../contract/fault.ts";
import type { BackendSettings } from "../contract/settings.ts";
import { withoutSurplus } from "../contract/sightings.ts";
import { ask, type HttpAnswer, type HttpQuestion } from "../shell/http.ts";
import { secretFile } from "../shell/secret-file.ts";
import {
  type Catalog,
  countedQuota,
  type Flavor,
  readCatalog,
  readCreated,
  readFlavors,
  readImage,
  readQuota,
  readServer,
  readServers,
  type Server,
} from "./answer.ts";
import { openStackFault } from "./faults.ts";
import { type Credentials, type OpenStackOptions, openStackOptions, readCredentials } from "./options.ts";
import { checkRequest, flavorFor, NOVA_VERSION, roomFor, serverBody, tokenBody } from "./request.ts";

/** A token is renewed so long before it expires. */
const RENEW_MS = 300_000;
/** Servers on one page of a list. */
const PAGE = 500;
const ORDER_MAX = 100;

export function openOpenStack(settings: BackendSettings): Backend {
  const cloud = new OpenStack(settings);
  return {
    type: "openstack",
    submit: (order) => cloud.submit(order),
    list: () => cloud.list(),
    cancel: (runners, { queued_only = false } = {}) => cloud.cancel(runners, queued_only),
    probe: () => cloud.probe(),
    // Tokens are in the user data of servers, which are deleted with them.
    release: async () => undefined,
    close: async () => undefined,
  };
}

type Session = { readonly token: string; readonly catalog: Catalog; readonly until_ms: number };

class OpenStack {
  readonly #settings: BackendSettings;
  readonly #options: OpenStackOptions;
  #session: Session | null = null;

  constructor(settings: BackendSettings) {
    this.#settings = settings;
    this.#options = openStackOptions(settings);
    readCredentials(secretFile(this.#options.credentials), this.#options.url);
  }

  async submit(order: RunnerOrder): Promise<readonly RunnerSighting[]> {
    checkRequest(order.request);
    const servers = await this.#servers();
    const own = order.isFirst ? [] : servers.map(({ sighting }) => sighting).filter(({ tag }) => tag === order.tag);
    const missing = Array.from({ length: order.count }, (_, index) => index).filter((index) => !own.some((each) => each.index === index));
    if (missing.length === 0) return own;
    const flavor = flavorFor(order.request, readFlavors(await this.#get("/flavors/detail")), this.#options);
    const room = await this.#room(flavor, servers);
    const image = await this.#image(order);
    const made: RunnerSighting[] = [];
    for (const index of missing.slice(0, room))
      made.push(await this.#create({ order, index, flavor, image, user: this.#settings.user }, own.length + made.length > 0));
    return [...own, ...made];
  }

  /** Returns how many servers may be made now. Throws if no server may be made. */
  async #room(flavor: Flavor, servers: readonly Server[]): Promise<number> {
    const building = servers.filter(({ sighting }) => sighting.state === "queued").length;
    const spawns = this.#options.max_spawns - building;
    if (spawns <= 0)
      throw new BackendError({ kind: "limit", text: `${building} servers are being built; max_spawns is ${this.#options.max_spawns}` });
    const quota = countedQuota(readQuota(await this.#get("/limits")), servers);
    const room = roomFor(flavor, quota);
    const used = Object.entries(quota).map(([name, { max, used: now }]) => `${name} ${now} of ${max}`);
    if (room <= 0) throw new BackendError({ kind: "limit", text: `the quota is used up: ${used.join(", ")}` });
    return Math.min(room, spawns);
  }

  /** Makes one server. hasSome: other servers of the order exist, so that every failure is uncertain. */
  async #create(parts: Parameters<typeof serverBody>[0], hasSome: boolean): Promise<RunnerSighting> {
    try {
      const id = readCreated(await this.#compute("POST", "/servers", serverBody(parts, this.#options)));
      const { order, index } = parts;
      return { tag: order.tag, index, id, state: "queued", reason: "BUILD", user: null, host: null, ending: null, fault: null };
    } catch (error) {
      if (!(error instanceof BackendError) || error.uncertain || !hasSome) throw error;
      throw new BackendError({ kind: error.kind, text: error.message }, { uncertain: true, cause: error });
    }
  }

  async #image({ request }: RunnerOrder): Promise<string> {
    const wanted = request.options["image"] ?? this.#options.options["image"] ?? this.#options.image;
    const { catalog } = await this.#login();
    if (catalog.image === null)
      return (
        wanted ??
        Promise.reject(new BackendError({ kind: "configuration", text: "there is no image service; set the attribute image to an id" }))
      );
    return readImage(await this.#call("GET", `${catalog.image}/v2/images?limit=1000`), wanted);
  }

  async list(): Promise<readonly RunnerSighting[]> {
    return (await this.#servers()).map(({ sighting }) => sighting);
  }

  /** Returns all servers of ours, without those that are surplus (I1). Deletes the surplus ones and those that have ended (I2). */
  async #servers(): Promise<readonly Server[]> {
    const servers: Server[] = [];
    const { complex, name: backend } = this.#settings;
    for (let marker: string | null = ""; marker !== null; ) {
      const from: string = marker === "" ? "" : `&marker=${encodeURIComponent(marker)}`;
      const page = readServers(await this.#get(`/servers/detail?limit=${PAGE}${from}`), { complex, backend });
      servers.push(...page.servers);
      marker = page.next;
    }
    const byId = new Map(servers.map((each) => [each.sighting.id, each]));
    const created = ({ id }: RunnerSighting): string => byId.get(id)?.created ?? "";
    const { kept, surplus } = withoutSurplus(
      [...byId.values()].map(({ sighting }) => sighting),
      (a, b) => (created(a) < created(b) ? -1 : 1),
    );
    const seen: Server[] = [];
    for (const { id } of kept) {
      const server = mustGet(byId, id);
      seen.push(server.isSilent ? await this.#withFault(server) : server);
    }
    const over = servers.filter((each) => each.over).map(({ sighting }) => sighting);
    for (const each of [...over, ...surplus]) await this.#delete(each.id);
    return seen;
  }

  /** Adds the reason to a failed server. Nova tells it only if it is asked for this single server. */
  async #withFault(server: Server): Promise<Server> {
    const { complex, name: backend } = this.#settings;
    const answer = await this.#asked("GET", `${(await this.#login()).catalog.compute}/servers/${encodeURIComponent(server.sighting.id)}`);
    return answer.status === 200 ? (readServer(answer.text, { complex, backend }) ?? server) : server;
  }

  async cancel(runners: readonly RunnerSighting[], queued_only: boolean): Promise<void> {
    const now = queued_only ? new Set((await this.list()).filter(({ state }) => state === "queued").map(({ id }) => id)) : null;
    for (const { id } of runners) if (now === null || now.has(id)) await this.#delete(id);
  }

  async probe(): ReturnType<Backend["probe"]> {
    this.#session = null;
    const quota = readQuota(await this.#get("/limits"));
    const used = Object.entries(quota).map(([name, { max, used: now }]) => `${name} ${now} of ${max}`);
    return { text: `openstack: ${used.join(", ")}`, array_max: ORDER_MAX };
  }

  /** Deletes a server. That it no longer exists is no error. */
  async #delete(id: string): Promise<void> {
    const answer = await this.#asked("DELETE", `${(await this.#login()).catalog.compute}/servers/${encodeURIComponent(id)}`);
    if (answer.status >= 400 && answer.status !== 404) throw this.#fault("DELETE server", answer);
  }

  readonly #get = (path: string): Promise<string> => this.#compute("GET", path);

  async #compute(method: HttpQuestion["method"], path: string, body?: object): Promise<string> {
    return this.#call(method, `${(await this.#login()).catalog.compute}${path}`, body);
  }

  /** Sends a request and returns the text of the answer. Throws a BackendError if the request was not successful. */
  async #call(method: HttpQuestion["method"], url: string, body?: object): Promise<string> {
    const answer = await this.#asked(method, url, body);
    if (answer.status < 200 || answer.status > 299)
      throw this.#fault(`${method} ${new URL(url).pathname.split("/").at(-1) ?? ""}`, answer, method === "POST" && answer.status >= 500);
    return answer.text;
  }

  /** Sends a request with a token. If the token was refused, sends it once more with a new token. */
  async #asked(method: HttpQuestion["method"], url: string, body?: object): Promise<HttpAnswer> {
    const once = async (): Promise<HttpAnswer> => {
      const { token } = await this.#login();
      const headers = {
        "x-auth-token": token,
        "openstack-api-version": `compute ${NOVA_VERSION}`,
        "x-openstack-nova-api-version": NOVA_VERSION,
      };
      return ask({ method, url, headers, body, timeout_ms: this.#options.timeout_ms, ca: authorities(this.#credentials()) });
    };
    const answer = await once();
    if (answer.status !== 401) return answer;
    this.#session = null;
    return once();
  }

  async #login(): Promise<Session> {
    if (this.#session !== null && Date.now() < this.#session.until_ms) return this.#session;
    const credentials = this.#credentials();
    const { timeout_ms } = this.#options;
    const answer = await ask({
      method: "POST",
      url: `${credentials.url}/auth/tokens`,
      headers: {},
      body: tokenBody(credentials),
      timeout_ms,
      ca: authorities(credentials),
    }).catch((error: unknown) => {
      throw error instanceof BackendError ? new BackendError({ kind: error.kind, text: error.message }, { cause: error }) : error;
    });
    const token = answer.header("x-subject-token");
    if (answer.status !== 201 || token === undefined) throw this.#fault("POST auth/tokens", answer);
    const catalog = readCatalog(answer.text, credentials.region);
    const until_ms = Date.parse(catalog.expires_at) - RENEW_MS;
    this.#session = { token, catalog, until_ms: Number.isFinite(until_ms) ? until_ms : 0 };
    return this.#session;
  }

  /** Read anew each time, so that new credentials count at once. */
  #credentials(): Credentials {
    return readCredentials(secretFile(this.#options.credentials), this.#options.url);
  }

  #fault(what: string, { status, text }: HttpAnswer, uncertain = false): BackendError {
    const secrets = [...this.#credentials().secrets, this.#session?.token ?? ""];
    return new BackendError(openStackFault(what, status, text, secrets), { uncertain });
  }
}

function authorities({ cacert }: Credentials): string | undefined {
  return cacert === null ? undefined : readFileSync(cacert, "utf8");
}
