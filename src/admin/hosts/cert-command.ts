// partita cert as a call with verbs of its own. Their code is loaded only when one is called.

import type { ArgumentsCamelCase, Argv, CommandModule } from "yargs";
import type { Conf } from "#support/conf.ts";
import { AdminError, complexConf, mustBeRoot } from "../complex/complex-home.ts";

type Common = { readonly home?: string | undefined };
type Work = typeof import("./cert.ts");

/** A verb. work: what it prints. */
function verb<A extends Common>(
  command: string,
  describe: string,
  options: (y: Argv<Common>) => Argv<A>,
  work: (cert: Work, conf: Conf, argv: ArgumentsCamelCase<A>) => Promise<string>,
) {
  return (y: Argv<Common>) =>
    y.command(command, describe, options, async (argv) => {
      const conf = complexConf(argv.home);
      mustBeRoot(conf);
      process.stdout.write(`${await work(await import("./cert.ts"), conf, argv)}\n`);
    });
}

const json = <A>(y: Argv<A>) => y.option("json", { type: "boolean", default: false, describe: "as JSON" });

const VERBS = [
  verb("list", "the authority, certificates of hosts and tokens", json, (cert, conf, argv) => cert.certList(conf, argv.json)),
  verb(
    "token",
    "make a token with which one new host can join (partita join)",
    (y) =>
      y
        .option("host", {
          type: "string",
          requiresArg: true,
          describe: "the one host that may use it (default: any host without a certificate)",
        })
        .option("hours", { type: "number", requiresArg: true, default: 1, describe: "how long it can be used" }),
    (cert, conf, argv) => cert.certToken(conf, argv.host ?? null, argv.hours),
  ),
  verb(
    "revoke [host]",
    "end all certificates of a host and its links, or withdraw a token",
    (y) =>
      y
        .positional("host", { type: "string", describe: "its name in partita cert list" })
        .option("token", { type: "string", requiresArg: true, describe: "ID of a token, in place of a host" }),
    async (cert, conf, { host, token }) => {
      if (host !== undefined && token === undefined) return cert.certRevoke(conf, host);
      if (host === undefined && token !== undefined) return cert.certWithdraw(conf, token);
      throw new AdminError("name a host, or a token by --token ID");
    },
  ),
  verb(
    "renew",
    "give this host (on the server host: the server) a new key and certificate",
    (y) => y,
    (cert, conf) => cert.certRenew(conf),
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
  describe: "certificates of hosts: list, token, revoke, renew, rotate, show",
  builder: (y) => {
    for (const add of VERBS) add(y);
    return y.demandCommand(1, "a verb is missing: list, token, revoke, renew, rotate, show");
  },
  handler: () => undefined,
};
