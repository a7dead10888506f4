// `partita doctor`: checks everything that an installation depends on, and reports faults with their remedies. It only reads.

import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { loginFile } from "#identity/files/user-credentials.ts";
import { serverSocketPath } from "#protocol/wire/socket-path.ts";
import { isStoreError } from "#store/store.ts";
import { messageOf } from "#support/caught.ts";
import { CONF_FILE_DEFAULT, type Conf, ConfError, parseConfText } from "#support/conf.ts";
import { localStamper } from "#support/local-time.ts";
import { systemUsers } from "#support/passwd.ts";
import { homeFault } from "#support/trusted-home.ts";
import { PARTITA_VERSION } from "#support/version.ts";
import { AdminError, complexConf, homeFaults, isMember, programTree } from "../complex/complex-home.ts";
import { askServer, DAEMONS, daemonPid, downScheds, enabledDaemons, isClosed } from "../complex/daemons.ts";
import { ownResidents } from "../complex/residents.ts";
import { hostFindings, serverFindings, sightFindings } from "./host-findings.ts";

/** What was found. fault: something does not work. warning: something works only for a limited time, or only for some users. */
export type Finding = { readonly level: "ok" | "warning" | "fault"; readonly text: string };

const FREE_BYTES_MIN = 1024 ** 3;
const CLOCK_SKEW_S_MAX = 5;
/** difference in seconds between the clocks of this host and of its server on another host, above which the user is warned */
const SERVER_CLOCK_S_MAX = 60;
const PROGRAMS = ["pbs_server", "pbs_sched", "pbs_mom", "pbs_comm", "qmgr", "qsub", "qstat", "pbsnodes"];

/** Returns all findings. Findings on which others depend come first. */
export async function examine(home: string | undefined): Promise<Finding[]> {
  const findings = [...runtime()];
  let conf: Conf;
  try {
    conf = complexConf(home);
  } catch (error) {
    if (!(error instanceof AdminError) && !(error instanceof ConfError)) throw error;
    return [...findings, fault(error.message)];
  }
  findings.push(
    ok(`configuration ${conf.file}, ${conf.mode} mode, server ${conf.server}`),
    ...programs(conf),
    ...residents(conf),
    ...tree(conf),
    ...jobEnvironment(conf),
    ...disk(conf),
    ...clock(conf),
  );
  if (conf.mode === "system") findings.push(...systemMode());
  findings.push(...daemons(conf), ...(await store(conf)), ...(await complex(conf)));
  return findings;
}

const ok = (text: string): Finding => ({ level: "ok", text });
const warning = (text: string): Finding => ({ level: "warning", text });
const fault = (text: string): Finding => ({ level: "fault", text });

function runtime(): Finding[] {
  const findings = [
    Number(process.versions.node.split(".")[0]) >= 24
      ? ok(`runtime Node ${process.versions.node}`)
      : fault(`runtime Node ${process.versions.node}: 24 is needed`),
  ];
  const require = createRequire(join(programTree(), "dist", "x.cjs"));
  for (const addon of ["koffi", "sqlite3"]) {
    try {
      require(addon);
      findings.push(ok(`native addon ${addon} loads`));
    } catch (error) {
      findings.push(fault(`native addon ${addon} does not load: run npm run build in the checkout (${messageOf(error).split("\n")[0]})`));
    }
  }
  return findings;
}

function programs(conf: Conf): Finding[] {
  const missing = PROGRAMS.filter((name) => ![join(conf.exec, "bin", name), join(conf.exec, "sbin", name)].some(isExecutable));
  return [
    missing.length === 0 ? ok(`programs in ${conf.exec}`) : fault(`missing in ${conf.exec}: ${missing.join(", ")}; run partita init again`),
  ];
}

/** Checks that residents can be started. Without them each command starts Node.js, which is slower but has no other effect. */
function residents(conf: Conf): Finding[] {
  const launcher = join(programTree(), "dist", "pbs_launcher");
  if (!existsSync(launcher)) {
    const why = join(programTree(), "dist", "pbs_launcher.none");
    const reason = existsSync(why) ? readFileSync(why, "utf8").split("\n")[0] : "it was not built";
    return [ok(`no pbs_launcher: every command starts a Node of its own (${reason})`)];
  }
  const wish = process.env["PARTITA_RESIDENT"] ?? conf.values["PARTITA_RESIDENT"] ?? "yes";
  if (wish === "no") return [ok("residents are switched off (PARTITA_RESIDENT=no): every command starts a Node of its own")];
  const running = ownResidents();
  if (running.length === 0) return [ok("no resident of yours runs; the second command within a minute starts one")];
  return [ok(`your residents run commands: pid ${running.map(({ pid }) => pid).join(", ")}`)];
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function tree(conf: Conf): Finding[] {
  if (!existsSync(conf.home)) return [fault(`PBS_HOME ${conf.home} does not exist: run ${conf.exec}/libexec/pbs_habitat or partita init`)];
  const owner = conf.mode === "system" ? 0 : statSync(conf.home).uid;
  if (conf.mode === "system" && process.geteuid?.() !== 0) return [warning("PBS_HOME is closed to you: as root more can be examined")];
  const unsafe = homeFault(conf);
  const faults = [
    ...(unsafe === null ? [] : [`${unsafe}: the daemons do not start. Take the writing from others, or give it to root`]),
    ...homeFaults(conf.home, conf.mode, owner),
  ];
  return faults.length === 0 ? [ok(`PBS_HOME ${conf.home}: directories, owners and modes`)] : faults.map(fault);
}

/** Checks that pbs_environment has the lines that init writes. A complex of an earlier release may not have them. */
function jobEnvironment(conf: Conf): Finding[] {
  const file = conf.environment_file;
  let values: Record<string, string>;
  try {
    values = parseConfText(readFileSync(file, "utf8"));
  } catch (error) {
    return [warning(`${file} cannot be read: jobs get no environment of the site (${messageOf(error)})`)];
  }
  const bin = join(conf.exec, "bin");
  const findings: Finding[] = [];
  if (!(values["PATH"] ?? "").split(":").includes(bin)) findings.push(warning(`${file}: jobs may not find qsub: put ${bin} into its PATH`));
  if (conf.file !== CONF_FILE_DEFAULT && values["PBS_CONF_FILE"] !== conf.file)
    findings.push(warning(`${file}: commands in jobs do not find this complex: add PBS_CONF_FILE=${conf.file}`));
  return findings.length === 0 ? [ok(`${file}: jobs find the commands of PBS`)] : findings;
}

function disk(conf: Conf): Finding[] {
  if (!existsSync(conf.home)) return [];
  const { bavail, bsize, files, ffree } = statfsSync(conf.home);
  const free = bavail * bsize;
  const text = `${(free / 1024 ** 3).toFixed(1)} GiB free where PBS_HOME is`;
  const findings = [
    free < FREE_BYTES_MIN / 10
      ? fault(`${text}: make room, submissions will be refused`)
      : free < FREE_BYTES_MIN
        ? warning(text)
        : ok(text),
  ];
  if (files > 0 && ffree < 10_000) findings.push(warning(`${ffree} inodes free where PBS_HOME is`));
  return findings;
}

/** Compares the clock of this machine with the clock that gives files their times. If PBS_HOME is on a file server, that is the clock of the file server. */
function clock(conf: Conf): Finding[] {
  const probe = join(conf.home, "spool", `.doctor-${process.pid}`);
  try {
    writeFileSync(probe, "", { flag: "wx", mode: 0o600 });
    const now = new Date();
    const written = statSync(probe).mtimeMs;
    utimesSync(probe, now, now);
    const skew_s = Math.abs(written - now.getTime()) / 1000;
    return [
      skew_s > CLOCK_SKEW_S_MAX
        ? warning(`the clock of PBS_HOME's file system is ${skew_s.toFixed(0)} s off`)
        : ok("clocks of machine and file system agree"),
    ];
  } catch {
    return [];
  } finally {
    rmSync(probe, { force: true });
  }
}

function systemMode(): Finding[] {
  const setpriv = ["/usr/bin/setpriv", "/bin/setpriv"].find((path) => existsSync(path));
  const findings = [
    setpriv === undefined
      ? fault("setpriv is missing (Debian: package util-linux): jobs cannot be started as their owners")
      : ok(`${setpriv} starts jobs as their owners`),
  ];
  const users = systemUsers();
  if (users.userByUid(0) === null) findings.push(fault("the name service does not know uid 0"));
  if (/\bhidepid=[12]\b|\bhidepid=(?:noaccess|invisible)\b/.test(readMounts()))
    findings.push(warning("/proc is mounted with hidepid: users see less of their jobs' processes"));
  return findings;
}

function readMounts(): string {
  try {
    return readFileSync("/proc/mounts", "utf8")
      .split("\n")
      .filter((line) => line.split(" ")[1] === "/proc")
      .join("\n");
  } catch {
    return "";
  }
}

function daemons(conf: Conf): Finding[] {
  const findings: Finding[] = [];
  for (const daemon of DAEMONS) {
    if (isClosed(conf, daemon)) continue;
    const pid = daemonPid(conf, daemon);
    const enabled = enabledDaemons(conf).includes(daemon);
    if (pid !== null) findings.push(ok(`pbs_${daemon} runs, pid ${pid}`));
    else if (enabled)
      findings.push(
        fault(`pbs_${daemon} does not run: partita start${conf.mode === "system" ? `, or ${conf.exec}/libexec/pbs_init.d start` : ""}`),
      );
  }
  return findings;
}

/** Checks the server's store: whether it exists, is undamaged and has the last commit. */
async function store(conf: Conf): Promise<Finding[]> {
  if (isClosed(conf, "server") || !conf.start.server) return [];
  const { examineStore } = await import("../store/store-check.ts");
  try {
    const found = await examineStore(conf, daemonPid(conf, "server"));
    return ["fault" in found ? fault(found.fault) : ok(found.sound)];
  } catch (error) {
    return [fault(isStoreError(error) ? error.message : `the store: ${messageOf(error)}`)];
  }
}

/** Examines a host that has joined: its link to the server, its certificate, and both clocks. */
async function member(conf: Conf): Promise<Finding[]> {
  const { lookAtServer } = await import("../hosts/member.ts");
  const sight = await lookAtServer(conf);
  if (!sight.ok) return [fault(sight.text), ...(await usersOf(conf))];
  const { clock_s, host } = sight;
  const findings = [ok(sight.text)];
  if (host !== conf.mom_node_name.toLowerCase())
    findings.push(
      fault(`the mom says that it is ${conf.mom_node_name}, and the certificate is that of ${host}: correct PBS_MOM_NODE_NAME`),
    );
  if (Math.abs(clock_s) > SERVER_CLOCK_S_MAX)
    findings.push(warning(`the clock of this host is ${Math.abs(clock_s)} s ${clock_s > 0 ? "ahead of" : "behind"} that of the server`));
  if (sight.seen !== undefined) {
    const { unreached } = await import("./reach.ts");
    const missing = await unreached(sight.seen.others);
    const runs_mom = conf.start.mom && daemonPid(conf, "mom") !== null;
    findings.push(...sightFindings(sight.seen, { port: conf.port.server, runs_mom, unreached: missing }));
  }
  return [...findings, ...(await usersOf(conf))];
}

/** Checks how users of a joined host can prove to the server who they are. In user mode the files of the host are enough. */
async function usersOf({ home, mode, values }: Conf): Promise<readonly Finding[]> {
  if (!existsSync(loginFile(home))) return [fault("this host has no certificate for its users: partita cert renew")];
  if (mode === "user") return [];
  const { openMunge } = await import("#protocol/proof/munge.ts");
  try {
    await openMunge({ socket: values["PARTITA_MUNGE_SOCKET"] ?? null, calls_max: 1, waiting_max: 1 }).encode("partita doctor");
    return [ok("MUNGE proves users of this host to the server")];
  } catch (error) {
    return [warning(`users of this host need certificates of their own (partita cert user): MUNGE: ${messageOf(error)}`)];
  }
}

/**
 * Examines the hosts of a complex on its server's host: the port for hosts, the server's certificate, and what the server
 * knows of the hosts. Only root may ask for this.
 */
async function hosts(conf: Conf): Promise<Finding[]> {
  if (!existsSync(join(conf.home, "server_priv/ca"))) return [];
  const [{ lookAtServer }, { askForHosts }] = await Promise.all([import("../hosts/member.ts"), import("../hosts/hosts.ts")]);
  const sight = await lookAtServer({ ...conf, server_host: "localhost", servers: [{ host: "localhost", port: conf.port.server }] });
  const port = sight.ok
    ? ok(`TCP port ${conf.port.server} answers, with a certificate of ${sight.host} until ${localDate(sight.until_s)}`)
    : fault(`other hosts cannot connect: ${sight.text}; see server_logs`);
  try {
    const { hosts: views, list } = await askForHosts(conf);
    if (list === null) return [port];
    const now_s = Math.floor(Date.now() / 1000);
    const { otherAddresses, unreached } = await import("./reach.ts");
    const places = views.flatMap(({ host, place }) => (place === null ? [] : [{ host, ...place }]));
    const [missing, other_addresses] = await Promise.all([unreached(places), otherAddresses(places)]);
    const reach = { port: conf.port.server, unreached: missing, other_addresses };
    return [port, ...hostFindings({ list, hosts: views, now_s, version: PARTITA_VERSION, date: localDate, ...reach })];
  } catch (error) {
    return [port, fault(`the server does not tell about hosts: ${messageOf(error)}`)];
  }
}

const localDate = (at_s: number): string => localStamper().stamp(at_s * 1000);

async function complex(conf: Conf): Promise<Finding[]> {
  if (isMember(conf)) return member(conf);
  const socket = serverSocketPath(conf.home);
  const stat = lstatSync(socket, { throwIfNoEntry: false });
  // A standby that waits does not listen; the active server is asked.
  const may_wait = conf.pair !== null && daemonPid(conf, "server") !== null;
  if (stat === undefined && !may_wait) return [fault(`${socket} is missing: the server does not listen`)];
  if (stat !== undefined && conf.mode === "system" && (stat.mode & 0o666) !== 0o666)
    return [fault(`${socket} has mode ${(stat.mode & 0o777).toString(8)}: users cannot connect`)];
  const seen = await askServer(conf);
  if (seen === null) return [fault("the server does not answer")];
  const findings = [ok("the server answers"), ...(await servers(conf))];
  for (const item of seen.scheds) {
    if (!("attrs" in item)) continue;
    const { state, comment } = item.attrs;
    const text = `scheduler ${item.id}: ${String(state)}${comment === undefined ? "" : `, ${String(comment)}`}`;
    if (downScheds(seen).some(({ name }) => name === item.id)) findings.push(fault(`${text}; see server_logs and its log`));
    else findings.push(/NEEDS_ATTENTION/.test(String(comment)) ? warning(text) : ok(text));
  }
  for (const item of seen.nodes) {
    if (!("attrs" in item)) continue;
    const state = String(item.attrs["state"]);
    const text = `vnode ${item.id}: ${state}`;
    findings.push(
      /\b(?:down|state-unknown|stale)\b/.test(state)
        ? fault(`${text}; see mom_logs`)
        : /\boffline\b/.test(state)
          ? warning(text)
          : ok(text),
    );
  }
  if (seen.nodes.length === 0) findings.push(warning("there are no vnodes: qmgr -c 'create node HOST'"));
  return [...findings, ...(stat === undefined ? [] : await hosts(conf))];
}

/** Examines the servers of a complex with two servers. */
async function servers(conf: Conf): Promise<Finding[]> {
  const { askForServers } = await import("../hosts/hosts.ts");
  try {
    const view = await askForServers(conf);
    return view === null ? [] : serverFindings(view, localDate);
  } catch (error) {
    return [fault(`the server does not tell about the standby: ${messageOf(error)}`)];
  }
}
