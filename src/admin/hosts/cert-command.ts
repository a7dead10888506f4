// Command `partita cert` with its verbs. The code of a verb is loaded only when it is called.

import { readFileSync } from "node:fs";
import type { ArgumentsCamelCase, Argv, CommandModule } from "yargs";
import type { Conf } from "#support/conf.ts";
import { AdminError, complexConf, mustBeRoot } from "../complex/complex-home.ts";

type Common = { readonly home?: string | undefined };
type Work = typeof import("./cert.ts");

/** Defines a verb. work: returns the text to print. */
function verb<A extends Common>(
  command: string,
  describe: string,
  options: (y: Argv<Common>) => Argv<A>,
  work: (cert: Work, conf: Conf, argv: ArgumentsCamelCase<A>) => Promise<string>,
  everyone = false,
) {
  return (y: Argv<Common>) =>
    y.command(command, describe, options, async (argv) => {
      const conf = complexConf(argv.home);
      if (!everyone) mustBeRoot(conf);
      process.stdout.write(`${await work(await import("./cert.ts"), conf, argv)}\n`);
    });
}

const json = <A>(y: Argv<A>) => y.option("json", { type: "boolean", default: false, describe: "as JSON" });

const VERBS = [
  verb("list", "the authority, certificates of hosts and tokens", json, (cert, conf, argv) => cert.certList(conf, argv.json)),
  verb(
    "token",
    "make a token with which one new host can join (partita join), or a user get a certificate (partita cert user)",
    (y) =>
      y
        .option("host", {
          type: "string",
          requiresArg: true,
          describe: "the one host that may use it (default: any host without a certificate)",
        })
        .option("user", {
          type: "string",
          requiresArg: true,
          describe: "the token is for this user, on a host that has joined",
        })
        .option("hours", { type: "number", requiresArg: true, default: 1, describe: "how long it can be used" }),
    (cert, conf, argv) => cert.certToken(conf, { host: argv.host ?? null, user: argv.user ?? null, hours: argv.hours }),
  ),
  verb(
    "user",
    "get a certificate of your own on this host, with a token of the administrator; commands then need no munge",
    (y) =>
      y.option("token", {
        type: "string",
        requiresArg: true,
        demandOption: true,
        describe: "what partita cert token --user printed; -: read it from standard input",
      }),
    (cert, conf, { token }) => {
      // Hides the token: every user of this host can read the arguments of a running command.
      process.title = "partita cert user";
      return cert.certUser(conf, token === "-" ? readFileSync(0, "utf8").trim() : token);
    },
    true,
  ),
  verb(
    "revoke [host]",
    "end all certificates of a host or of a user, and their links, or withdraw a token",
    (y) =>
      y
        .positional("host", { type: "string", describe: "its name in partita cert list" })
        .option("user", { type: "string", requiresArg: true, describe: "name of a user, in place of a host" })
        .option("token", { type: "string", requiresArg: true, describe: "ID of a token, in place of a host" }),
    async (cert, conf, { host, user, token }) => {
      if ([host, user, token].filter((each) => each !== undefined).length === 1) {
        if (host !== undefined) return cert.certRevoke(conf, host);
        if (user !== undefined) return cert.certRevokeUser(conf, user);
        if (token !== undefined) return cert.certWithdraw(conf, token);
      }
      throw new AdminError("name a host, a user by --user NAME, or a token by --token ID");
    },
  ),
  verb(
    "renew",
    "give this host (on the server host: the server) a new key and certificate",
    (y) =>
      y.option("due", {
        type: "boolean",
        default: false,
        describe: "only if less than a third of its time is left; for cron on login hosts",
      }),
    (cert, conf, { due }) => cert.certRenew(conf, due),
  ),
  verb(
    "rotate",
    "replace the certificate authority: first without an option, and with --finish when all hosts have its certificates",
    (y) =>
      y
        .option("finish", { type: "boolean", default: false, describe: "the new authority replaces the present one" })
        .option("force", { type: "boolean", default: false, describe: "with --finish: hosts without its certificate must join again" }),
    (cert, conf, { finish, force }) => cert.certRotate(conf, finish, force),
  ),
  verb("show", "the certificate of this host", json, (cert, conf, argv) => cert.certShow(conf, argv.json)),
];

export const certCommand: CommandModule<Common, Common> = {
  command: "cert",
  describe: "certificates of hosts and users: list, token, user, revoke, renew, rotate, show",
  builder: (y) => {
    for (const add of VERBS) add(y);
    return y.demandCommand(1, "a verb is missing: list, token, user, revoke, renew, rotate, show");
  },
  handler: () => undefined,
};
