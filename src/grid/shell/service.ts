// The running daemon: its store, its socket, and a loop for each cluster.
//
// S1. An answer is sent only after every change that it reports is durable.
// S2. The kernel names the user of each connection (SO_PEERCRED).

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { ClusterSettings } from "#backends/contract/cluster.ts";
import { BackendError } from "#backends/contract/fault.ts";
import { openCluster } from "#backends/open-cluster.ts";
import { ownerOf } from "#backends/shell/users.ts";
import type { GridRequest } from "#protocol/grid-messages.ts";
import { GRID_LIMITS, parseGridRequest } from "#protocol/schema-grid.ts";
import { identifyPeer } from "#protocol/wire/identity.ts";
import { listenLinks, type ServerLink } from "#protocol/wire/ipc-transport.ts";
import { gridSocketPath } from "#protocol/wire/socket-path.ts";
import type { Mailer } from "#server/shell/mailer.ts";
import type { Store } from "#store/store.ts";
import { messageOf, stackOf } from "#support/caught.ts";
import { systemUsers, type UserDatabase } from "#support/passwd.ts";
import type { GridAnswer } from "../requests/answers.ts";
import { PBSE_PERM } from "../requests/answers.ts";
import { jobsOf } from "../requests/campaigns.ts";
import { handle } from "../requests/handle.ts";
import { endedJobView, findCampaign, liveJobViews } from "../requests/status.ts";
import type { GridSettings } from "../shapes/settings.ts";
import type { ClusterRecord } from "../state/grid-state.ts";
import type { GridCore } from "../work/core.ts";
import type { Admission } from "./admission.ts";
import { ClusterLoop } from "./cluster-loop.ts";
import { type Commits, groupCommits } from "./commits.ts";
import { Notifier } from "./notifier.ts";

export type ServiceOptions = {
  readonly home: string;
  /** every user may connect (system mode) */
  readonly everyone: boolean;
  readonly host: string;
  readonly core: GridCore;
  readonly store: Store;
  readonly key: string;
  readonly busy_ms: number;
  readonly admission: Admission;
  readonly settings: () => GridSettings;
  readonly mailer: Mailer;
  readonly note: (text: string) => void;
};

const PBSE_PROTOCOL = 15031;
const PBSE_BADCRED = 15019;
const PBSE_SYSTEM = 15010;
/** The largest length of a request, and of all waiting requests of a user together, in characters. */
const FRAME_CHARS_MAX = GRID_LIMITS.parameters_chars_max + 2 * GRID_LIMITS.jdl_chars_max;
const IDLE_MS = 10_000;

export type Service = { close(): Promise<void> };

/** Epoch seconds, with milliseconds: jobs may end within a second. */
const now_s = (): number => Date.now() / 1000;

/** Starts the daemon's work. Resolves when the daemon accepts requests. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { core, store, note } = options;
  const users = systemUsers();
  const commits = groupCommits(store, () => core.takeBatch(), note);
  const loops = new Map<string, { readonly record: ClusterRecord; readonly loop: ClusterLoop }>();
  const { settings, mailer } = options;
  const notifier = new Notifier({ core, settled: () => commits.settled(), settings, mailer, now_s, note });
  const changed = (): void => {
    core.settings = settings();
    core.finish(now_s());
    notifier.poke();
    for (const [name, { loop }] of loops) if (core.toSubmit(name).length > 0) loop.poke();
  };
  const arrange = (): void => arrangeLoops(options, loops, commits, changed);
  const listener = await listenLinks({
    path: gridSocketPath(options.home),
    types: ["request"],
    everyone: options.everyone,
    limits: { request_frame_chars_max: FRAME_CHARS_MAX, user_pending_chars_max: FRAME_CHARS_MAX },
    onFrame: (link, _, data) =>
      void answer(link, data, options, users, commits, () => {
        arrange();
        core.finish(now_s());
        notifier.poke();
        for (const { loop } of loops.values()) loop.poke();
      }),
    onProblem: (text) => note(text),
  });
  core.settings = settings();
  core.finish(now_s());
  arrange();
  notifier.poke();
  return {
    async close() {
      await listener.close();
      options.admission.close();
      notifier.close();
      await Promise.all([...loops.values()].map(({ loop }) => loop.close()));
      await commits.settled();
    },
  };
}

/** Requests that change nothing. */
const QUESTIONS: ReadonlySet<GridRequest["kind"]> = new Set([
  ...(["grid-campaigns", "grid-jobs", "grid-jdl", "grid-events", "grid-clusters", "grid-subscriptions"] as const),
]);

async function answer(
  link: ServerLink,
  data: unknown,
  { core, store, host, note, admission, settings }: ServiceOptions,
  users: UserDatabase,
  commits: Commits,
  changed: () => void,
): Promise<void> {
  const { id, rest } = numbered(data);
  if (id === null) return link.destroy();
  const refuse = (code: number, text: string): void => link.reply({ id, ok: false, code, text });
  const peer = identifyPeer(link.peer, users, host);
  if (peer === null) return refuse(PBSE_BADCRED, "Invalid credential");
  const parsed = parseGridRequest(rest);
  if ("fault" in parsed) return refuse(PBSE_PROTOCOL, `Batch protocol error: ${parsed.fault}`);
  const { request } = parsed;
  try {
    core.settings = settings();
    const is_manager = peer.uid === 0 || peer.uid === process.getuid?.();
    const admitted = await admittedOf(request, peer.user, core, admission);
    if ("refused" in admitted) return refuse(PBSE_PERM, admitted.refused);
    const made = handle(core, { name: peer.user, is_manager }, admitted, now_s());
    if (!made.ok) return refuse(made.code, made.text);
    const value = await shownOf(made, core, store);
    if (!QUESTIONS.has(request.kind)) {
      changed();
      await commits.settled();
    }
    if (link.open) link.reply({ id, ok: true, value });
  } catch (error) {
    note(`request ${request.kind}: ${stackOf(error)}`);
    refuse(PBSE_SYSTEM, `the grid could not do this: ${messageOf(error)}`);
  }
}

/** Returns a request as the admission rules have changed it. The rules do not get a campaign that has faults: the handler of the request refuses it. */
async function admittedOf(
  request: GridRequest,
  user: string,
  core: GridCore,
  admission: Admission,
): Promise<GridRequest | { readonly refused: string }> {
  if (request.kind !== "grid-submit") return request;
  const jobs = jobsOf(core, request);
  return jobs === null ? request : admission.check(request, core.user ?? user, jobs);
}

function numbered(data: unknown): { readonly id: number | null; readonly rest: unknown } {
  if (typeof data !== "object" || data === null) return { id: null, rest: null };
  const { id, ...rest } = data as { readonly id?: unknown };
  return { id: typeof id === "number" && Number.isSafeInteger(id) && id >= 0 ? id : null, rest };
}

/** Returns the value of an answer. Jobs of a campaign that have ended are read from the history. */
async function shownOf(made: Extract<GridAnswer, { readonly ok: true }>, core: GridCore, store: Store): Promise<unknown> {
  if ("value" in made) return made.value;
  const campaign = findCampaign(core, made.jobs_of);
  if ("code" in campaign) throw new Error("the campaign has vanished");
  const live = liveJobViews(campaign);
  const items = live.slice(made.offset, made.offset + made.limit);
  let skip = Math.max(0, made.offset - live.length);
  if (items.length < made.limit)
    for await (const rows of store.history.pages({ queue: String(campaign.id) }, Math.min(1000, made.limit + skip))) {
      for (const row of rows) {
        if (skip-- > 0) continue;
        if (items.length < made.limit) items.push(endedJobView(campaign, row));
      }
      if (items.length >= made.limit) break;
    }
  return { items };
}

/** Starts loops for new clusters, and ends those of clusters that are gone or have changed. */
function arrangeLoops(
  { core, home, key, everyone, busy_ms, note }: ServiceOptions,
  loops: Map<string, { readonly record: ClusterRecord; readonly loop: ClusterLoop }>,
  commits: Commits,
  changed: () => void,
): void {
  for (const [name, { record, loop }] of loops) {
    if (core.state.clusters.get(name)?.options === record.options) continue;
    loops.delete(name);
    void loop.close();
  }
  for (const [name, record] of core.state.clusters) {
    if (loops.has(name)) continue;
    const state_dir = join(home, "grid_priv", "clusters", name);
    mkdirSync(state_dir, { recursive: true, mode: 0o700 });
    const settings: ClusterSettings = { name, type: record.type, grid: key, options: record.options, user: core.user, state_dir };
    try {
      const loop = new ClusterLoop(name, openCluster(settings), {
        core,
        settled: () => commits.settled(),
        now_s,
        ownerOf: (user) => (everyone ? knownOwner(user) : null),
        note,
        changed,
        busy_ms,
        idle_ms: IDLE_MS,
      });
      loops.set(name, { record, loop });
    } catch (error) {
      note(`cluster ${name}: ${messageOf(error)}`);
      core.failed(name, messageOf(error), now_s());
    }
  }
}

function knownOwner(user: string): ReturnType<typeof ownerOf> {
  const owner = ownerOf(user);
  if (owner === null) throw new BackendError({ kind: "configuration", text: `this machine has no user ${user}, or it is root` });
  return owner;
}
