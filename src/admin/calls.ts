// The calls of partita and their options. The code of a call is loaded when the call is made.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import yargs, { type ArgumentsCamelCase, type Argv } from "yargs";
import { hideBin } from "yargs/helpers";
import { type Conf, SERVER_PORT_DEFAULT } from "#support/conf.ts";
import { PARTITA_VERSION, PBS_VERSION } from "#support/version.ts";
import { AdminError, complexConf, confOf, isMember, mustBeRoot, programTree, quote } from "./complex/complex-home.ts";
import { complexEnv, programOf, runningText, startDaemons, stopDaemons, waitUntilUp } from "./complex/daemons.ts";
import { gridCommand } from "./grid/grid-command.ts";
import { certCommand } from "./hosts/cert-command.ts";
import { importPbsCommand, translateCommand } from "./migration/migration-command.ts";
import { reportCommand, seffCommand } from "./report/report-command.ts";
import { simCommand } from "./sim/sim-command.ts";
import { storeCommand } from "./store/store-command.ts";
import { tuneCommand } from "./tune/tune-command.ts";
import { tokenCommand, webCommand } from "./web/web-command.ts";

const out = (text: string): void => void process.stdout.write(`${text}\n`);

/** The option that all calls have. */
type Common = { readonly home: string | undefined };
/** Adds one call to the command line. */
type Call = (y: Argv<Common>) => unknown;

/** Makes a call. describe: its line in the help; false: the help does not show the call. */
function call<A>(
  command: string,
  describe: string | false,
  options: (y: Argv<Common>) => Argv<A>,
  handler: (argv: ArgumentsCamelCase<A>) => void | Promise<void>,
): Call {
  return (y) => y.command({ command, describe, builder: options, handler });
}

const INIT = call(
  "init",
  "create a complex: queue workq, a node with the cpus of this host, job_history_enable=True (set when it first starts); with --system install PBS, or update it",
  (y) =>
    y
      .option("system", { type: "boolean", default: false, describe: "system mode: as root, jobs run as their owners" })
      .option("prefix", {
        type: "string",
        requiresArg: true,
        describe: "with --system: PBS_EXEC, the directory to install into (default: /opt/pbs)",
      })
      .option("server", { type: "string", requiresArg: true, describe: "name of the server (default: the short host name)" })
      .option("vnodes", {
        type: "number",
        requiresArg: true,
        describe: "divide this host into so many vnodes, HOST[0] and on: to try partitions on one machine",
      }),
  async (argv) => {
    const { init } = await import("./installation/init.ts");
    out(init({ home: argv.home, system: argv.system, prefix: argv.prefix, server: argv.server, vnodes: argv.vnodes }));
  },
);

const START = call(
  "start",
  "start the daemons; returns when the complex answers",
  (y) => y,
  async (argv) => {
    const conf = ownConf(argv.home);
    const started: string[] = [...(await startDaemons(conf).catch(withRunning(conf)))];
    if (isMember(conf) && (await warnUnlessKnown(conf))) {
      const { startHostScheds } = await import("./complex/host-scheds.ts");
      const scheds = await startHostScheds(conf, (text) => process.stderr.write(`partita: ${text}\n`));
      started.push(...scheds.map((name) => `sched -I ${name}`));
    }
    const told = isMember(conf) ? [] : await waitUntilUp(conf).catch(withRunning(conf));
    for (const text of told) process.stderr.write(`partita: ${text}\n`);
    out(started.length === 0 ? "Everything runs already." : `Started ${started.map((name) => `pbs_${name}`).join(", ")}.`);
  },
);

const STOP = call(
  "stop",
  "stop all daemons, and your residents; returns when the daemons are gone; jobs of a stopped mom are ended",
  (y) => y,
  async (argv) => {
    const { stopResidents } = await import("./complex/residents.ts");
    const stopped = [...(await stopDaemons(ownConf(argv.home), (text) => process.stderr.write(`partita: ${text}\n`)))];
    if ((await stopResidents()) > 0) stopped.push("pbs_resident");
    out(stopped.length === 0 ? "Nothing was running." : `Stopped ${stopped.join(", ")}.`);
  },
);

const STATUS = call(
  "status",
  "what runs on this host; exit status 1 when the server does not answer, or a daemon of pbs.conf, a scheduler that should run or this host's vnode is down",
  (y) =>
    y
      .option("json", { type: "boolean", default: false, describe: "as JSON" })
      .option("F", { choices: ["json"] as const, requiresArg: true, describe: "json: as --json" }),
  async (argv) => {
    const { reportStatus } = await import("./health/status.ts");
    const { text, status } = await reportStatus(complexConf(argv.home), argv.json || argv.F === "json");
    out(text);
    process.exitCode = status;
  },
);

const ENV = call(
  "env",
  'shell lines that set PATH and PBS_CONF_FILE: eval "$(partita env)"',
  (y) => y,
  (argv) => {
    const conf = complexConf(argv.home);
    const path = [join(conf.exec, "bin"), ...(conf.mode === "system" ? [join(conf.exec, "sbin")] : [])].join(":");
    out(`PBS_CONF_FILE=${quote(conf.file)}\nPATH=${quote(path)}:"$PATH"\nexport PBS_CONF_FILE PATH`);
  },
);

const RESET = call(
  "reset",
  "delete everything of the complex and start it anew: queue workq, one node with 16 cpus (whatever the host has), job_history_enable=True",
  (y) => y.option("yes", { type: "boolean", default: false, describe: "everything of the complex is deleted" }),
  async (argv) => {
    if (!argv.yes) throw new AdminError("reset deletes all jobs, logs and the configuration of the complex; say --yes");
    const { resetComplex } = await import("./installation/reset.ts");
    await resetComplex(ownConf(argv.home));
  },
);

const BACKUP = call(
  "backup <file>",
  "a consistent copy of the store, also while the server works",
  (y) => y.positional("file", { type: "string", demandOption: true, describe: "must not exist yet" }),
  async (argv) => {
    const { backup } = await import("./store/backup.ts");
    await backup(ownConf(argv.home), resolve(argv.file));
    out(`Saved to ${resolve(argv.file)}.`);
  },
);

const RESTORE = call(
  "restore <file>",
  "put a backup in the place of the store of a stopped complex; the store of before is kept beside it",
  (y) => y.positional("file", { type: "string", demandOption: true, describe: "what partita backup made, or a store with its -wal" }),
  async (argv) => {
    const { restore } = await import("./store/restore.ts");
    const { jobs, finished, kept } = await restore(ownConf(argv.home), resolve(argv.file));
    out(`Restored ${resolve(argv.file)}. Jobs: ${jobs} not finished, ${finished} finished.`);
    if (kept !== null) out(`The store of before: ${kept}`);
    out(`Start it:  partita start${argv.home === undefined ? "" : ` --home ${quote(argv.home)}`}`);
  },
);

const STORE: Call = (y) => y.command(storeCommand);

const DOCTOR = call(
  "doctor",
  "examine the installation: programs, rights, disk, clocks, daemons, store; exit status 1 when something is wrong",
  (y) =>
    y
      .option("json", { type: "boolean", default: false, describe: "as JSON" })
      .option("F", { choices: ["json"] as const, requiresArg: true, describe: "json: as --json" }),
  async (argv) => {
    const { examine } = await import("./health/doctor.ts");
    const findings = await examine(argv.home);
    const mark = { ok: "ok     ", warning: "warning", fault: "FAULT  " };
    out(
      argv.json || argv.F === "json"
        ? JSON.stringify(findings, null, 2)
        : findings.map(({ level, text }) => `${mark[level]} ${text}`).join("\n"),
    );
    process.exitCode = findings.some(({ level }) => level === "fault") ? 1 : 0;
  },
);

const UPGRADE = call(
  "upgrade",
  "run from a checkout with a newer version: save the store, install the programs (system mode), restart all daemons but a mom that has jobs",
  (y) =>
    y.option("restart", {
      type: "boolean",
      default: false,
      describe: "a package has installed the programs already: only save the store and restart the daemons",
    }),
  async (argv) => {
    const conf = ownConf(argv.home);
    const { upgrade } = await import("./installation/upgrade.ts");
    await upgrade(conf, out, argv.restart);
  },
);

const UNINSTALL = call(
  "uninstall",
  "remove the programs that init --system installed; with --purge the complex itself, too",
  (y) =>
    y.option("purge", {
      type: "boolean",
      default: false,
      describe: "also remove PBS_HOME and pbs.conf: jobs, logs and configuration (user mode has nothing else)",
    }),
  async (argv) => {
    const conf = ownConf(argv.home);
    const { uninstall } = await import("./installation/uninstall.ts");
    out(uninstall(conf, argv.purge));
  },
);

const SHELL = call(
  "shell",
  "the admin shell: qmgr of the complex",
  (y) => y,
  (argv) => {
    const conf = complexConf(argv.home);
    const { status, signal, error } = spawnSync(programOf(conf, "qmgr"), [], { stdio: "inherit", env: complexEnv(conf) });
    if (error !== undefined) throw new AdminError(`qmgr: ${error.message}`);
    process.exitCode = signal === null ? (status ?? 1) : 1;
  },
);

const DEMO = call(
  "demo",
  "a throw-away complex: two schedulers, two partitions, real jobs",
  (y) => y.option("keep", { type: "boolean", default: false, describe: "leave it running" }),
  async (argv) => {
    const { demo } = await import("./installation/demo.ts");
    await demo(out, argv.keep);
  },
);

const EXPLAIN = call(
  "explain <job>",
  "why a job waits: every reason, by kind of node, what stands in the way, the earliest start and how it has moved",
  (y) =>
    y
      .positional("job", { type: "string", demandOption: true, describe: "12, 12.server, 12[3]" })
      .option("json", { type: "boolean", default: false, describe: "as JSON" }),
  async (argv) => {
    const { explain } = await import("./explain/explain.ts");
    process.stdout.write(await explain(complexConf(argv.home), argv.job, argv.json));
  },
);

const TOP = call(
  "top",
  "schedulers, partitions, waiting jobs with planned starts and events, live; over a pipe one snapshot",
  (y) =>
    y
      .option("json", { type: "boolean", default: false, describe: "one snapshot as JSON" })
      .option("seconds", { type: "number", default: 2, describe: "between looks" }),
  async (argv) => {
    const { top } = await import("./top/top.ts");
    await top(complexConf(argv.home), { json: argv.json, seconds: argv.seconds }, process.stdout);
  },
);

const JOIN = call(
  "join <server>",
  "make this host a part of the complex of a server, with a token from partita cert token: programs (system mode), pbs.conf, PBS_HOME, certificate",
  (y) =>
    y
      .positional("server", { type: "string", demandOption: true, describe: "name or address of the server's host" })
      .option("token", {
        type: "string",
        requiresArg: true,
        demandOption: true,
        describe: "what partita cert token printed on the server; -: read it from standard input",
      })
      .option("port", { type: "number", requiresArg: true, default: SERVER_PORT_DEFAULT, describe: "PBS_BATCH_SERVICE_PORT of the server" })
      .option("name", { type: "string", requiresArg: true, describe: "name of this host in the complex (default: the short host name)" })
      .option("prefix", {
        type: "string",
        requiresArg: true,
        describe: "system mode: PBS_EXEC, the directory to install into (default: /opt/pbs)",
      })
      .option("login", { type: "boolean", default: false, describe: "a host for users and their commands, without a mom" })
      .option("standby", { type: "boolean", default: false, describe: "the host of the standby server (PBS_SECONDARY)" }),
  async (argv) => {
    const { server, port, name, home, prefix, login, standby } = argv;
    // Hides the token: every user of this host can read the arguments of a running command, and could join with the token.
    process.title = "partita join";
    const token = argv.token === "-" ? readFileSync(0, "utf8") : argv.token;
    const { joinComplex } = await import("./hosts/join.ts");
    out(await joinComplex({ server, token, port, name, home, prefix, login, standby }));
  },
);

const HOSTS = call(
  "hosts",
  "show the hosts of the complex: since when their moms are connected, how fast they answer, versions, certificates (as root), states",
  (y) => y.option("F", { choices: ["json"] as const, requiresArg: true, describe: "json: as JSON" }),
  async (argv) => {
    const conf = complexConf(argv.home);
    if (isMember(conf)) throw new AdminError("the server is on another host: call partita hosts there");
    const { showHosts } = await import("./hosts/hosts.ts");
    out(await showHosts(conf, argv.F === "json"));
  },
);

const RUNNERS = call(
  "runners",
  "show the backends and their runners: what was asked for, what came, what the backend says",
  (y) => y.option("F", { choices: ["json"] as const, requiresArg: true, describe: "json: as JSON" }),
  async (argv) => {
    const { showRunners } = await import("./hosts/runners.ts");
    out(await showRunners(complexConf(argv.home), argv.F === "json"));
  },
);

const CONFIRM_DEAD = call(
  "confirm-dead [name..]",
  "lost runners (by name, or by a job on them; default: all) are dead: their jobs are requeued or end",
  (y) =>
    y
      .positional("name", { type: "string", array: true })
      .option("age", { type: "number", default: 0, requiresArg: true, describe: "only runners that have been lost for so many seconds" }),
  async (argv) => {
    const { confirmDead } = await import("./hosts/runners.ts");
    out(await confirmDead(complexConf(argv.home), argv.name ?? [], Math.max(0, Math.floor(argv.age))));
  },
);

const GRID: Call = (y) => y.command(gridCommand);

const WEB: Call = (y) => y.command(webCommand).command(tokenCommand);

const CERT: Call = (y) => y.command(certCommand);

const IMPORT_PBS: Call = (y) => y.command(importPbsCommand);

const TRANSLATE: Call = (y) => y.command(translateCommand);

const REPORT: Call = (y) => y.command(reportCommand);

const SEFF: Call = (y) => y.command(seffCommand);

const SIM: Call = (y) => y.command(simCommand);
const TUNE: Call = (y) => y.command(tuneCommand);

const BENCH = call(
  "bench",
  "measure this machine against the budgets, peers beside us when they are up (from a checkout)",
  (y) =>
    y
      .option("only", { choices: ["cycle", "live", "peers", "store"] as const })
      .option("quick", { type: "boolean", default: false })
      .option("json", { type: "string", describe: "FILE for the figures" }),
  (argv) => {
    const script = join(programTree(), "scripts", "run.mjs");
    if (!existsSync(script)) throw new AdminError("bench runs from a checkout only");
    const args = [
      ...(argv.only === undefined ? [] : ["--only", argv.only]),
      ...(argv.quick ? ["--quick"] : []),
      ...(argv.json === undefined ? [] : ["--json", resolve(argv.json)]),
    ];
    process.exitCode = spawnSync(process.execPath, [script, "bench", ...args], { stdio: "inherit" }).status ?? 1;
  },
);

const COMPLETION = call(
  "completion [shell]",
  "completion of the command lines of all commands: partita completion bash >>~/.bashrc",
  (y) => y.positional("shell", { choices: ["bash", "zsh", "fish"] as const, default: "bash" as const, describe: "the shell" }),
  (argv) => {
    const file = { bash: "partita.bash", zsh: "_partita", fish: "partita.fish" }[argv.shell];
    process.stdout.write(readFileSync(join(programTree(), "dist/completion", file), "utf8"));
  },
);

const HABITAT = call(
  "habitat",
  false,
  (y) => y.option("conf", { type: "string", demandOption: true }),
  async (argv) => {
    const { habitat } = await import("./installation/init.ts");
    habitat(confOf(resolve(argv.conf)));
  },
);

/** All calls, in the order in which the help shows them. */
const CALLS: readonly Call[] = [
  INIT,
  START,
  STOP,
  STATUS,
  ENV,
  RESET,
  BACKUP,
  RESTORE,
  STORE,
  DOCTOR,
  JOIN,
  CERT,
  HOSTS,
  RUNNERS,
  CONFIRM_DEAD,
  GRID,
  WEB,
  IMPORT_PBS,
  TRANSLATE,
  UPGRADE,
  UNINSTALL,
  SHELL,
  DEMO,
  EXPLAIN,
  TOP,
  REPORT,
  SEFF,
  SIM,
  TUNE,
  BENCH,
  COMPLETION,
  HABITAT,
];

/** Reads the command line and makes the call. Throws the errors of the call. */
export async function makeCall(): Promise<void> {
  const y = yargs(hideBin(process.argv))
    .scriptName("partita")
    .usage("$0 COMMAND [options]\n\nMakes, starts, stops and looks after a PBS complex.")
    .option("home", {
      type: "string",
      requiresArg: true,
      describe:
        "directory of the complex (default: $PARTITA_HOME, else the complex of $PBS_CONF_FILE, of the user's state directory, of /etc/pbs.conf)",
    });
  for (const add of CALLS) add(y);
  await y
    .version(`partita ${PARTITA_VERSION} (pbs_version = ${PBS_VERSION})`)
    .demandCommand(1, "a command is missing")
    .strict()
    .recommendCommands()
    .help()
    .alias("help", "h")
    .fail((message, error) => {
      // A YError is a mistake in the command line that yargs has found while it parsed.
      if (error !== undefined && error !== null && error.name !== "YError") throw error;
      process.stderr.write(`partita: ${mistake(message)}\nTry ${helpOf(process.argv[2], message)}.\n`);
      process.exit(2);
    })
    .parseAsync();
}

/** Returns the message about a mistake that yargs has found, in the words of the help. */
function mistake(message: string): string {
  const option = /^Not enough arguments following: (\S+)$/.exec(message)?.[1];
  if (option !== undefined) return `--${option} needs a value`;
  return message.startsWith("Not enough non-option arguments") ? "an argument is missing" : message;
}

/** Returns the call that shows the right help text after a mistake. It is the help of the command, unless the command itself is wrong. */
function helpOf(first: string | undefined, message: string): string {
  const isCommand = first !== undefined && /^[a-z]+$/.test(first) && !message.startsWith("Did you mean") && !message.endsWith(`: ${first}`);
  return isCommand ? `partita ${first} --help` : "partita --help";
}

/**
 * Warns if the server does not accept this host. The mom of a joined host tries again and again to connect, so a server that
 * cannot be reached does not make the start fail.
 */
async function warnUnlessKnown(conf: Conf): Promise<boolean> {
  const { lookAtServer } = await import("./hosts/member.ts");
  const sight = await lookAtServer(conf);
  if (!sight.ok) process.stderr.write(`partita: ${sight.text}; the mom tries again\n`);
  return sight.ok;
}

/** Returns the configuration of the complex for a call that changes running daemons. Throws AdminError if the caller may not do that. */
function ownConf(home: string | undefined): Conf {
  const conf = complexConf(home);
  mustBeRoot(conf);
  return conf;
}

/** Adds a sentence to the error of a failed start: the daemons that run stay, and the next start needs to start only the others. */
const withRunning =
  (conf: Conf) =>
  (error: Error): never => {
    if (!(error instanceof AdminError)) throw error;
    const text = runningText(conf);
    throw text === "" ? error : new AdminError(`${error.message}\n${text}`, { cause: error });
  };
