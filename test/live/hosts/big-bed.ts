// A complex of many hosts in a net with weather (switch.ts): a server without mom, its database on a host of its own, two hosts with schedulers and without mom, a
// login host, moms, and perhaps a standby server. Users are known by munge. The hosts share files, as a site's hosts share /home.

import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../complex.ts";
import { LACK_OF_POSTGRES, type Postgres, startPostgres } from "../store/postgres-bed.ts";
import { type Bed, closeBed, makeBed, tokenIn } from "./bed.ts";
import { lackOfMunge, type Munged, startMunged } from "./munged.ts";
import { lackOfNamespaces, lackOfWeather, makeNet, type NetHost } from "./namespaces.ts";

export const MOMS_OF_BED = 8;
/** Schedulers on hosts of their own, each with its partition. The default scheduler runs on the head. */
const SCHEDS = [
  { sched: "s1", host: "sched1", partition: "p1", queue: "q1" },
  { sched: "s2", host: "sched2", partition: "p2", queue: "q2" },
] as const;
const SET_UPS_AT_ONCE = 3;
const NCPUS = 4;

export type BigBed = Bed & {
  readonly db: NetHost;
  /** the host of the standby server; null: there is none */
  readonly spare: NetHost | null;
  readonly login: NetHost;
  readonly scheds: readonly NetHost[];
  readonly moms: readonly NetHost[];
  readonly postgres: Postgres;
  host(name: string): NetHost;
  qmgr(...lines: readonly string[]): void;
  /** runs a command of PBS on the login host, as a user */
  fromLogin(words: readonly string[], user: string, input?: string): Promise<string>;
  close(): Promise<void>;
};

/** Why this machine cannot have the bed, for `skip`; false: it can. */
export const lackOfBigBed = (): string | false => lackOfNamespaces() || lackOfWeather() || lackOfMunge() || LACK_OF_POSTGRES;

type BigBedOptions = {
  /** a second server, on the host `spare` */
  readonly standby?: boolean;
  /** lines of database.conf */
  readonly database?: readonly string[];
};

/** partitionOf: the partition of the mom of that number; undefined: the default one. */
export async function makeBigBed(
  partitionOf: (mom: number) => "p1" | "p2" | undefined,
  { standby = false, database = [] }: BigBedOptions = {},
): Promise<BigBed> {
  const mom_names = Array.from({ length: MOMS_OF_BED }, (_, at) => `node${at + 1}`);
  const servers = standby ? ["head", "spare"] : ["head"];
  const net = makeNet([...servers, "db", "login1", ...SCHEDS.map(({ host }) => host), ...mom_names], { weather: true, home: true });
  const host = (name: string): NetHost => net.hosts.find((each) => each.name === name) as NetHost;
  const closing: (() => void | Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    closeBed(net);
    for (const work of closing.reverse()) await work();
  };
  try {
    const munged = await startMunged();
    closing.push(() => munged.close());
    const [head, db, login] = [host("head"), host("db"), host("login1")];
    const postgres = startPostgres({
      within: db.within,
      conf: ["listen_addresses = '*'"],
      hba: servers.map((name) => `host all all ${host(name).address}/32 scram-sha-256`),
    });
    closing.push(() => postgres.remove());
    const made = makeBed(net, head);
    const bed: BigBed = {
      ...made,
      db,
      spare: standby ? host("spare") : null,
      login,
      scheds: SCHEDS.map(({ host: name }) => host(name)),
      moms: mom_names.map(host),
      postgres,
      host,
      qmgr: (...lines) =>
        void head.must("sh", "-c", 'printf "%s" "$0" | "$@"', lines.map((line) => `${line}\n`).join(""), ...made.wordsAt(head, ["qmgr"])),
      fromLogin: (words, user, input = "") => login.later(made.wordsAt(login, words, user), { input }),
      close,
    };
    startHead(bed, munged, database);
    await joinAll(bed, munged, partitionOf);
    return bed;
  } catch (error) {
    await close();
    throw error;
  }
}

function startHead(bed: BigBed, munged: Munged, lines: readonly string[]): void {
  const { head, spare, db, postgres, homeOf } = bed;
  const home = homeOf(head);
  const pair = spare === null ? "" : `PBS_PRIMARY=${head.name}\nPBS_SECONDARY=${spare.name}\n`;
  appendFileSync(join(home, "pbs.conf"), `PARTITA_STORE=postgres\nPARTITA_MUNGE_SOCKET=${munged.socket}\n${pair}`);
  const database = postgres.conf("sslmode = disable", ...lines).replace(/^host = .*$/m, `host = ${db.name}`);
  writeFileSync(join(home, "pbs/server_priv/database.conf"), database, { mode: 0o600 });
  bed.partita(head, "start");
  bed.qmgr(
    "set server job_history_enable = True",
    ...SCHEDS.flatMap(({ sched, host, partition, queue }) => [
      `create sched ${sched} partition = ${partition},sched_host = ${host}`,
      `set sched ${sched} scheduling = True`,
      `create queue ${queue} queue_type = execution,partition = ${partition},enabled = True,started = True`,
    ]),
  );
}

/** All hosts but head and database join, some at a time. The standby waits when this returns. */
async function joinAll(bed: BigBed, munged: Munged, partitionOf: (mom: number) => string | undefined): Promise<void> {
  const waiting = [...(bed.spare === null ? [] : [bed.spare]), ...bed.scheds, bed.login, ...bed.moms];
  const next = async (): Promise<void> => {
    for (let host = waiting.shift(); host !== undefined; host = waiting.shift()) await joinOne(bed, host, munged);
  };
  await Promise.all(Array.from({ length: SET_UPS_AT_ONCE }, next));
  bed.qmgr(
    ...bed.moms.flatMap(({ name }, at) => [
      `create node ${name}`,
      `set node ${name} resources_available.ncpus = ${NCPUS}`,
      ...(partitionOf(at) === undefined ? [] : [`set node ${name} partition = ${partitionOf(at)}`]),
    ]),
  );
  for (const { name } of bed.moms) await until(`${name} is free`, () => bed.state(name) === "free");
  for (const { sched } of SCHEDS)
    await until(`${sched} is idle`, () => /state = idle/.test(bed.pbs(["qmgr", "-c", `list sched ${sched} state`])));
}

async function joinOne(bed: BigBed, host: NetHost, munged: Munged): Promise<void> {
  const { head, net, moms, login } = bed;
  const partita = join(net.dir, "opt/bin/partita");
  const token = tokenIn(await head.later([partita, "cert", "token", "--host", host.name, "--home", bed.homeOf(head)]));
  const is_mom = moms.includes(host);
  const kind = is_mom ? [] : [host === bed.spare ? "--standby" : "--login"];
  const words = ["join", head.name, "--token", "-", "--prefix", join(net.dir, "opt"), ...kind];
  const home = bed.homeOf(host);
  await host.later([partita, ...words, "--home", home], { input: `${token}\n` });
  appendFileSync(join(home, "pbs.conf"), `PARTITA_RESIDENT=no\nPARTITA_MUNGE_SOCKET=${munged.socket}\n`);
  if (is_mom) {
    mkdirSync(join(home, "pbs/mom_priv"), { recursive: true });
    const shared = [net.dir, "/home"].map((path) => `$usecp *:${path}/ ${path}/\n`).join("");
    appendFileSync(join(home, "pbs/mom_priv/config"), `$status_interval 2\n$min_check_poll 1\n$max_check_poll 1\n${shared}`);
  }
  if (host !== login) await host.later([partita, "start", "--home", home]);
}
