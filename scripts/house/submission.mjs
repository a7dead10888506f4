// Which files of src/server a submitted job passes: those with a function that runs between the frame of one queue-job and the commit of its rows, by V8's
// precise coverage. The gate, the driver and the core are the daemon's own; the link, the clock and the store are stand-ins, so that the result is the same on
// every run. A scheduler is connected and idle, as in a complex at work.

import { Session } from "node:inspector";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { ROOT } from "../lib/paths.mjs";

const HOST = "svr";
const NOW_MS = Date.UTC(2026, 10, 20, 9, 26, 28);
const USERS = [
  { name: "root", uid: 0 },
  { name: "alice", uid: 1000 },
].map(({ name, uid }) => ({ name, uid, gid: uid, home: `/home/${name}`, shell: "/bin/sh" }));

const CONFIG = {
  host: HOST,
  home: "/home/pbs",
  pbs_version: "23.06.06",
  own_user: null,
  ctime: (epoch_s) => String(epoch_s),
  timeZone: () => null,
  userExists: (name) => USERS.some((user) => user.name === name),
};
const USER_DATABASE = {
  userByName: (name) => USERS.find((user) => user.name === name) ?? null,
  userByUid: (uid) => USERS.find((user) => user.uid === uid) ?? null,
  groupByName: () => null,
  groupByGid: (gid) => ({ name: `group${gid}`, gid }),
  gidsOf: ({ gid }) => [gid],
  groupsOf: ({ gid }) => [`group${gid}`],
};

/** A job as qsub sends it: `qsub -l select=1:ncpus=1 script`. */
const SUBMISSION = {
  kind: "queue-job",
  destination: "",
  attrs: [
    { name: "Job_Name", value: "STDIN" },
    { name: "Output_Path", value: "svr:/tmp/o" },
    { name: "Error_Path", value: "svr:/tmp/e" },
    { name: "Submit_Host", value: HOST },
    { name: "Variable_List", value: "PBS_O_HOME=/home/alice,PBS_O_HOST=svr" },
    { name: "Resource_List", resource: "select", value: "1:ncpus=1" },
  ],
  script: "#!/bin/sh\n",
};

/**
 * The paths, sorted. Throws if the job is refused or nothing is committed.
 * @returns {Promise<string[]>}
 */
export async function filesOfSubmission() {
  const server = await openServer();
  const sched = server.connect(1, { uid: 0, gid: 0, pid: 17 });
  sched.send("sched-hello", { name: "default", pid: 17, version: "house" });
  sched.send("sched-cycle-end", { cycle: server.sent.get("sched-cycle").cycle, jobs_considered: 0, cycle_ms: 1 });
  const user = server.connect(2, { uid: 1000, gid: 1000, pid: 18 });
  // Work of a first request is done before the measurement: modules are loaded, and tables are built.
  user.send("request", { id: 1, kind: "status", object: "queue", ids: [] });
  const coverage = new Coverage();
  server.onCommit(() => coverage.stop());
  coverage.start();
  user.send("request", { id: 2, ...SUBMISSION });
  if (coverage.files === null) throw new Error(`house: the job was not committed: ${JSON.stringify(server.sent.get("reply"))}`);
  return coverage.files;
}

/** The files of src/server with a function that ran between start() and stop(). */
class Coverage {
  #session = new Session();
  /** null: not stopped
   *  @type {string[] | null} */
  files = null;

  start() {
    this.#session.connect();
    this.#post("Profiler.enable");
    this.#post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  }

  stop() {
    if (this.files !== null) return;
    const { result } = this.#post("Profiler.takePreciseCoverage");
    this.#session.disconnect();
    const ran = result.filter(({ url, functions }) => url.startsWith("file:") && functions.some(({ ranges }) => ranges[0].count > 0));
    this.files = ran
      .map(({ url }) => relative(ROOT, fileURLToPath(url)))
      .filter((path) => path.startsWith("src/server/"))
      .sort();
  }

  #post(method, params) {
    let answer;
    this.#session.post(method, params, (error, result) => {
      if (error !== null) throw new Error(error.message);
      answer = result;
    });
    return answer;
  }
}

/** A complex as after its first start. send(): a frame arrives, and everything that follows at once is done. sent: the last frame of each type. */
async function openServer() {
  const load = (name) => import(`../../src/server/${name}.ts`);
  const [{ Gate }, { ServerDriver }, { storePort }] = await Promise.all(
    ["driver/gate", "driver/server-driver", "driver/store-port"].map(load),
  );
  const [{ freshState }, { prepareStart }] = await Promise.all(["state/load", "core/first-start"].map(load));
  const nothing = () => undefined;
  const due = [];
  const clock = { wall_ms: () => NOW_MS, steady_ms: () => NOW_MS, after: () => nothing, soon: (work) => void due.push(work) };
  const sent = new Map();
  let onCommit = nothing;
  const gate = new Gate({
    driver: () => driver,
    users: USER_DATABASE,
    host: HOST,
    own_uid: 0,
    system: true,
    log: { note: nothing },
    clock,
    scripts: nothing,
    cookies: nothing,
    group: { configure: nothing, command: (links) => links, passes: nothing, dismiss: nothing },
    listener: { setLimits: nothing, close: nothing },
  });
  const settle = (_ask, done) => {
    onCommit();
    due.push(() => done({ ok: true }));
  };
  const ports = {
    store: storePort({ history: {} }, HOST, settle),
    clock,
    links: gate,
    clients: gate,
    processes: { start: nothing, prepare: nothing, say: nothing, isChild: () => true },
    files: { hook: nothing, resources: nothing, formula: nothing },
    log: { note: nothing, records: nothing, setMask: nothing },
    accounting: { record: nothing, flush: nothing, lost: 0 },
    mail: { send: nothing },
    onBug(error) {
      throw error;
    },
  };
  const driver = new ServerDriver(ports, CONFIG, freshState(HOST, CONFIG));
  const settled = () => {
    while (due.length > 0) due.shift()();
  };
  prepareStart(driver.core, { start: "warm", fresh: true, node: HOST });
  driver.start();
  settled();
  return {
    sent,
    onCommit: (work) => {
      onCommit = work;
    },
    connect(id, peer) {
      const link = new StandInLink(id, peer, gate, sent);
      gate.opened(link);
      return {
        send(type, data) {
          link.arrives(type, data);
          settled();
        },
      };
    },
  };
}

/** The server's end of a connection. sent: gets the last frame of each type that the server sends on any connection. */
class StandInLink {
  frame_chars = 0;
  #gate;
  #sent;
  #queue = [];

  constructor(id, peer, gate, sent) {
    this.id = id;
    this.peer = peer;
    this.#gate = gate;
    this.#sent = sent;
  }

  /** Requests wait for their turn, frames of a scheduler do not. */
  arrives(type, data) {
    if (type !== "request") return this.#gate.frame(this, type, data);
    this.#queue.push(data);
    this.#gate.ready(this);
  }

  serveNext() {
    const data = this.#queue.shift();
    if (data !== undefined) this.#gate.frame(this, "request", data);
    return this.#queue.length > 0;
  }

  send(type, data) {
    this.#sent.set(type, data);
  }

  reply(reply) {
    this.#sent.set("reply", reply);
  }

  part() {}
  hold() {}
  release() {}
  welcome() {}
}
