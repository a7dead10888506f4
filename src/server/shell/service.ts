// The service of pbs_server. It connects the driver of the core (../driver/server-driver.ts) with real ports: sockets, the
// store, the clock, child processes, files, logs.

import { createHash, randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import { StatusDesk } from "#protocol/datagram/status-desk.ts";
import type { ComplexSettings } from "#protocol/join-link.ts";
import { GroupDesk } from "#protocol/multicast/group-desk.ts";
import { schedPorts } from "#protocol/sched-ports.ts";
import { frameTypes } from "#protocol/schema-link.ts";
import { aesGcm } from "#protocol/udp/aes-gcm.ts";
import { makeSigner } from "#protocol/udp/ed25519.ts";
import { openGroupSender } from "#protocol/udp/multicast-socket.ts";
import { type LinkHandlers, type LinkServer, listenLinks } from "#protocol/wire/ipc-transport.ts";
import { confLimits } from "#protocol/wire/limit-keys.ts";
import type { Limits } from "#protocol/wire/limits.ts";
import { nameOfPeer } from "#protocol/wire/link-peer.ts";
import type { Shares } from "#protocol/wire/share.ts";
import { serverSocketPath } from "#protocol/wire/socket-path.ts";
import type { Store } from "#store/store.ts";
import type { AccountingLog } from "#support/accounting-log.ts";
import { messageOf } from "#support/caught.ts";
import { type Conf, shortHostName } from "#support/conf.ts";
import { keepFormulaFile } from "#support/formula-file.ts";
import type { Log } from "#support/log.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { UserDatabase } from "#support/passwd.ts";
import type { Core } from "../core/core.ts";
import { linkLimits } from "../driver/connections.ts";
import { Gate, type GateOptions } from "../driver/gate.ts";
import type { ClockPort, LoadedState, LogPort, ProcessesPort } from "../driver/ports.ts";
import { ServerDriver } from "../driver/server-driver.ts";
import { atOnce, storePort } from "../driver/store-port.ts";
import type { ServerConfig } from "../engine/transaction.ts";
import { hostSight, momPlaces } from "../moms/host-sight.ts";
import { remotePlace, schedsOf } from "../state/partitions.ts";
import type { AuthorityOptions } from "./authority.ts";
import { FileHosts } from "./file-hosts.ts";
import { hookFiles } from "./hook-files.ts";
import { hookRuns } from "./hook-runs.ts";
import { hostLookup } from "./host-lookup.ts";
import { identityPort, type OpenIdentity } from "./identity-port.ts";
import { mailer } from "./mailer.ts";
import { HostNetwork } from "./network.ts";
import { memberOf, type Pair, pairSettings } from "./pair.ts";
import { RemoteScheds, withRemote } from "./remote-scheds.ts";
import { keepResourceFile } from "./resource-file.ts";
import { runSecrets } from "./run-secrets.ts";
import { runnersProcess } from "./runners-process.ts";
import { schedProcesses } from "./sched-processes.ts";
import { unprivilegedUser } from "./unprivileged.ts";
import { mungeOf, userProver } from "./user-prover.ts";

/** How long a mom on another host uses a key for its reports. */
const KEY_ROTATION_MS = 3_600_000;

export type ServiceOptions = {
  readonly conf: Conf;
  readonly config: ServerConfig;
  readonly store: Store;
  readonly log: Log;
  readonly accounting: AccountingLog;
  readonly users: UserDatabase;
  /** as read from the store */
  readonly loaded: LoadedState;
  /** the complex has two servers, and this one leads; null: the complex has one server */
  readonly pair: Pair | null;
  /** called once with the new core, before anything else happens (first-start.ts) */
  readonly prepare: (core: Core) => void;
  /** called when everything is closed and the process may end */
  readonly ended: () => void;
};

export type Service = {
  /** ends the server as qterm -t quick does. scheds: with the schedulers of this host */
  stop(scheds?: boolean): void;
  /** whether a person has told the server to end by qterm */
  isToldToEnd(): boolean;
  /** where the moms of other hosts accept connections */
  moms(): ReturnType<typeof momPlaces>;
  /** opens the log files again; called at SIGHUP */
  reopenLogs(): void;
};

/** Starts the service. Resolves when the server answers. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { conf, config, store, accounting, users, pair } = options;
  const { state, due } = options.loaded;
  const system = conf.mode === "system";
  const log = logPort(options.log, config.host);
  const complain = (text: string): void => log.note(LOG_EVENT.ERROR, text);
  const hook_files = hookFiles(`${config.home}/server_priv/hooks`, complain);
  const files = fileCopies(join(config.home, "server_priv"), complain);
  let listener: LinkServer | null = null;
  const types = ["request", ...frameTypes("sched-to-server"), ...frameTypes("mom-to-server"), ...frameTypes("runners-to-server")];
  const handlers: LinkHandlers = {
    onLink: (link) => gate.opened(link),
    onReady: (link) => gate.ready(link),
    onFrame: (link, type, data) => gate.frame(link, type, data),
    onClose: (link) => gate.closed(link),
    onProblem: (text, peer) => log.note(LOG_EVENT.SECURITY, `connection ended: ${text}${peer === null ? "" : `, ${nameOfPeer(peer)}`}`),
  };
  const desk = statusDesk();
  const group = groupDesk(log);
  const own_limits = ownLimits(conf);
  /** what each peer holds of the limits on links, counted over the unix socket and the TCP port (wire/share.ts) */
  const shares: Shares = new Map();
  const network = new HostNetwork({
    home: config.home,
    settings: settingsOf(conf),
    types,
    handlers,
    shares,
    onDatagram: (bytes, answer) => gate.datagram(bytes, answer),
    dropped: desk.dropped,
    multicast: group.counts,
    proveUser: proverOf(conf, users),
    now_s: epoch_s,
    note: log.note,
    sightOf: (host) => hostSight(driver.core.kernel, host),
    schedsOf: (host) => schedsOf(driver.core.state, config, host),
    files: (question, asker, address) => file_hosts.answer(question, asker, address),
    reviewed: () => remote.review(),
    dialled: () => remote.links,
    kept: () => pair?.files.keep() ?? Promise.resolve(),
    leader: () => pair?.confirmedLeader() ?? Promise.resolve(null),
    standbyFor: (host) => pair?.standbyFor(host) ?? null,
  });
  const identity = identityPort(authorityOptions(conf, config.home), network, pair?.files);
  const file_hosts = new FileHosts({ kernel: () => driver.core.kernel, hasHost: (name) => identity.hasHost(name) });
  const remote = remoteScheds(options, identity, heardHandlers(handlers, network), () => driver);
  const gate = new Gate({
    driver: () => driver,
    users,
    host: config.host,
    own_uid: process.getuid?.() ?? 0,
    system,
    log,
    clock: realTime,
    desk,
    certified: () => identity.hostNames(),
    group,
    scripts: (ids, done) => atOnce(() => store.scripts(ids), done),
    cookies: newCookies,
    secret: runSecrets(config.home, complain),
    ...proofsOf(conf, pair),
    listener: {
      setLimits(limits) {
        listener?.setLimits(limits);
        network.setLimits(limits);
      },
      close: (done) => closeWays(listener, network, remote, done),
    },
  });
  const lookUp = hostLookup(conf.mom_node_name);
  const ports = {
    store: storePort(store, config.host, atOnce, pair !== null),
    clock: realTime,
    links: gate,
    clients: gate,
    processes: withRemote(
      processesOf(options, () => driver),
      remote,
    ),
    runners: runnersProcess(config.home, complain),
    hooks: hookRuns({ conf, system, users, answer: (query) => driver.core.hookQuery(query), complain }),
    files: { ...files, hook: hook_files.write },
    log,
    accounting,
    mail: mailPort(conf, users, complain),
    identity,
    // A host that has joined is identified by its certificate, so its name need not have an address.
    resolve: (host: string, done: (name: string | null) => void) => (identity.hasHost(host) ? done(host) : lookUp(host, done)),
    onBug: (error: unknown) => complain(`internal error: ${error instanceof Error ? error.stack : String(error)}`),
    ended: options.ended,
  };
  const driver = new ServerDriver(ports, config, state, due);
  hook_files.prepare(state.hooks.values());
  files.resources(state.resources.values());
  options.prepare(driver.core);
  if (typeof state.server["log_events"] === "number") log.setMask(state.server["log_events"]);
  listener = await listenLinks({
    path: serverSocketPath(config.home),
    types,
    everyone: system,
    limits: { ...own_limits, ...linkLimits(state) },
    shares,
    ...handlers,
  });
  network.setLimits(own_limits);
  gate.setLimits(state);
  await identity.begin().catch((error: unknown) => complain(`other hosts cannot connect: ${messageOf(error)}`));
  driver.start();
  return {
    stop: (scheds) => driver.stop(scheds),
    isToldToEnd: () => driver.isToldToEnd,
    moms: () => momPlaces(driver.core.kernel),
    reopenLogs() {
      options.log.reopen();
      accounting.reopen();
    },
  };
}

/** Returns the handlers of links to schedulers on other hosts: the network also notes when it last heard of such a host. */
function heardHandlers(handlers: LinkHandlers, network: HostNetwork): LinkHandlers {
  return {
    ...handlers,
    onFrame(link, type, data) {
      handlers.onFrame(link, type, data);
      network.heard(link);
    },
  };
}

/** Returns the limits that pbs.conf sets. Their faults were told before the start (../main.ts). */
function ownLimits({ values }: Conf): Partial<Limits> {
  const read = confLimits(values);
  return read.ok ? read.limits : {};
}

/** Returns the cookies of so many jobs in one text, 32 hexadecimal digits for each. */
const newCookies = (count: number): string =>
  randomBytes(16 * count)
    .toString("hex")
    .toUpperCase();

const mailPort = ({ mode, values }: Conf, users: UserDatabase, problem: (text: string) => void): ReturnType<typeof mailer> =>
  mailer({
    domain: values["PBS_MAIL_HOST_NAME"],
    identity: mode === "system" ? unprivilegedUser(users, "PBS_MAIL_USER", values["PBS_MAIL_USER"]) : null,
    problem,
  });

/** Closes everything through which peers reach the server. */
function closeWays(listener: LinkServer | null, network: HostNetwork, remote: ReturnType<typeof remoteScheds>, done: () => void): void {
  remote.close();
  void Promise.all([listener?.close(), network.close()]).then(done);
}

/** Returns the options with which the gate recognizes runners and, in a complex with two servers, tells moms which server leads. */
function proofsOf(conf: Conf, pair: Pair | null): Pick<GateOptions, "digest" | "leader" | "own_address"> {
  const digest = (token: string): string => createHash("sha256").update(token).digest("hex");
  if (pair === null || conf.pair === null) return { digest };
  return { digest, leader: () => (pair.leads ? pair.leader : null), own_address: conf.pair[pair.role].host };
}

/** Returns the desk that receives the reports of moms on other hosts. boot: a random id, from which the moms see that the server has started again. */
const statusDesk = (): StatusDesk =>
  new StatusDesk({ cipher: aesGcm, random: randomBytes, boot: randomBytes(8).toString("hex"), rotation_ms: KEY_ROTATION_MS });

/** Returns the desk that sends commands to many moms at once. */
const groupDesk = ({ note }: LogPort): GroupDesk =>
  new GroupDesk({
    cipher: aesGcm,
    random: randomBytes,
    boot: randomBytes(8).toString("hex"),
    signer: makeSigner,
    clock: realTime,
    open: (settings, near) => openGroupSender(settings, near, (text) => note(LOG_EVENT.ERROR, text)),
    rotation_ms: KEY_ROTATION_MS,
    note: (text) => note(LOG_EVENT.SYSTEM, text),
  });

/** What a new host must know of this complex. */
function settingsOf(conf: Conf): ComplexSettings {
  const pair = pairSettings(conf);
  return { server: conf.own_server, port: conf.port.server, mode: conf.mode, ...(pair === undefined ? {} : { pair }) };
}

/** In a complex with two servers, PBS_HOME/identity has the certificates of this host, and server_priv/identity has the certificate of the server. */
const authorityOptions = (conf: Conf, home: string): AuthorityOptions => ({
  home,
  server: conf.own_server,
  own_names: namesHere(conf),
  now_s: epoch_s,
  ...(conf.pair === null ? {} : { server_home: join(home, "server_priv"), member: memberOf(conf) }),
});

/** Returns the function that checks the proof of a user on another host. */
const proverOf = (conf: Conf, users: UserDatabase): ReturnType<typeof userProver> =>
  userProver({
    system: conf.mode === "system",
    server: conf.own_server,
    own_uid: process.getuid?.() ?? 0,
    users,
    munge: mungeOf(conf),
    now_s: epoch_s,
  });

/** Returns the names of this host besides PBS_SERVER. */
const namesHere = (conf: Conf): readonly string[] => [
  shortHostName(conf.own_server),
  conf.mom_node_name,
  hostname(),
  shortHostName(hostname()),
  conf.server_host,
];

const epoch_s = (): number => Math.floor(Date.now() / 1000);

const realTime: ClockPort = {
  wall_ms: () => Date.now(),
  steady_ms: () => performance.now(),
  after(delay_ms, work) {
    const timer = setTimeout(work, delay_ms).unref();
    return () => clearTimeout(timer);
  },
  soon: (work) => void setImmediate(work),
};

function logPort(log: Log, host: string): LogPort {
  return {
    note: (event, text) => log.record(event, "Svr", `Server@${host}`, text),
    records: (list) => log.records(list),
    setMask: (mask) => {
      log.mask = mask;
    },
  };
}

/** The port that writes copies of data into files. directory: server_priv. */
function fileCopies(directory: string, complain: (text: string) => void) {
  const attempt = (fault: string | null): void => {
    if (fault !== null) complain(fault);
  };
  return {
    resources: (defs: Parameters<typeof keepResourceFile>[1]) => attempt(keepResourceFile(directory, defs)),
    formula: (text: string | null) => attempt(keepFormulaFile(directory, text)),
  };
}

/** The schedulers on other hosts. handlers: the handlers of the server's listeners. They may be called only after the driver has been made. */
function remoteScheds(
  { conf, config, log, pair }: ServiceOptions,
  identity: OpenIdentity,
  handlers: LinkHandlers,
  driver: () => ServerDriver,
): RemoteScheds {
  const schedOf = (name: string) => driver().core.state.scheds.get(name);
  return new RemoteScheds({
    placeOf(name) {
      const sched = schedOf(name);
      return sched === undefined ? null : remotePlace(sched, config);
    },
    isDown: (name) => schedOf(name)?.attrs["state"] === "down",
    ownSide: () => identity.ownSide(),
    leads: () => driver().leads,
    leader: () => pair?.leader ?? null,
    types: frameTypes("sched-to-server"),
    handlers: {
      onLink: (link) => handlers.onLink?.(link),
      onFrame: handlers.onFrame,
      onClose: (link) => handlers.onClose?.(link),
      ...(handlers.onProblem === undefined ? {} : { onProblem: handlers.onProblem }),
    },
    ports: schedPorts(conf.values),
    unreached: (name, why) => driver().schedUnreached(name, why),
    log: (name, text) => log.record(LOG_EVENT.SECURITY, "Sched", name, text),
  });
}

function processesOf({ conf, config, log, users }: ServiceOptions, driver: () => ServerDriver): ProcessesPort {
  return schedProcesses({
    home: config.home,
    exec: conf.exec,
    system: conf.mode === "system",
    users,
    attrsOf: (name) => driver().core.state.scheds.get(name)?.attrs,
    exited: (name, how) => driver().schedExited(name, how),
    unfit: (name, text) => driver().schedUnfit(name, text),
    log: (name, text) => log.record(LOG_EVENT.SYSTEM, "Sched", name, text),
  });
}
