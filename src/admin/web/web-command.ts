// Commands `partita web`, which starts and stops pbs_web, and `partita token`, which makes and revokes its tokens.

import { userInfo } from "node:os";
import type { CommandModule } from "yargs";
import type { Conf } from "#support/conf.ts";
import { localStamper } from "#support/local-time.ts";
import { parseScopes } from "#web/access/token.ts";
import { changeTokens, newToken, readTokens, TOKENS_MAX } from "#web/shell/token-file.ts";
import { AdminError, complexConf, isMember, mustBeRoot } from "../complex/complex-home.ts";
import { sidePid, startSide, stopSide } from "../complex/side-daemon.ts";
import { table } from "../hosts/table.ts";

type Common = { readonly home?: string | undefined };

const PORT_DEFAULT = 8080;
const DAYS_DEFAULT = 30;
const DAYS_MAX = 3650;
const DAY_S = 86_400;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

export const webCommand: CommandModule<Common, Common> = {
  command: "web",
  describe: "the REST interface of a complex (pbs_web)",
  builder: (y) =>
    y
      .command(
        "start",
        "start pbs_web on the loopback address; returns when it answers",
        (options) =>
          options.option("port", { type: "number", default: PORT_DEFAULT, requiresArg: true, describe: "TCP port; 0: any free port" }),
        async (argv) => say(await startWeb(webConf(argv.home), argv.port)),
      )
      .command(
        "stop",
        "stop pbs_web; tokens stay valid",
        (options) => options,
        async (argv) => say(await stopWeb(webConf(argv.home))),
      )
      .command(
        "status",
        "whether pbs_web runs; exit status 1 if it does not",
        (options) => options,
        (argv) => {
          const pid = sidePid(webConf(argv.home), WEB);
          say(pid === null ? "pbs_web does not run." : `pbs_web runs (pid ${pid}).`);
          process.exitCode = pid === null ? 1 : 0;
        },
      )
      .demandCommand(1, "what to do with pbs_web is missing"),
  handler: () => undefined,
};

export const tokenCommand: CommandModule<Common, Common> = {
  command: "token",
  describe: "tokens for programs that use the REST interface",
  builder: (y) =>
    y
      .command(
        "create",
        "make a token and print it; it cannot be shown again",
        (options) =>
          options
            .option("scope", {
              type: "string",
              default: "read",
              requiresArg: true,
              describe: "what the token is good for, as a list: read, submit, manage",
            })
            .option("days", { type: "number", default: DAYS_DEFAULT, requiresArg: true, describe: "days until the token ends" }),
        async (argv) => say(await createToken(webConf(argv.home), argv.scope, argv.days)),
      )
      .command(
        "list",
        "show the tokens: id, user, scopes, end",
        (options) => options,
        (argv) => say(tokenList(webConf(argv.home))),
      )
      .command(
        "revoke <id>",
        "make a token invalid at once",
        (options) => options.positional("id", { type: "string", demandOption: true, describe: "as partita token list shows it" }),
        async (argv) => say(await revokeToken(webConf(argv.home), argv.id)),
      )
      .demandCommand(1, "what to do with tokens is missing"),
  handler: () => undefined,
};

/** Returns the configuration of a complex that may have a pbs_web. */
function webConf(home: string | undefined): Conf {
  const conf = complexConf(home);
  mustBeRoot(conf);
  if (conf.mode === "system")
    throw new AdminError("pbs_web works only in user mode yet: in system mode it would have to act as the users of its tokens");
  if (isMember(conf)) throw new AdminError("the server is on another host: pbs_web runs beside the server");
  return conf;
}

const WEB = { name: "pbs_web", word: "web" };

async function startWeb(conf: Conf, port: number): Promise<string> {
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new AdminError("--port must be a number from 0 to 65535");
  const pid = sidePid(conf, WEB);
  if (pid !== null) return `pbs_web runs already (pid ${pid}).`;
  const said = await startSide(conf, WEB, { PARTITA_WEB_PORT: String(port) });
  return `Started pbs_web: http://127.0.0.1:${said.trim().replace("port ", "")}`;
}

async function stopWeb(conf: Conf): Promise<string> {
  return (await stopSide(conf, WEB)) ? "Stopped pbs_web." : "pbs_web was not running.";
}

async function createToken(conf: Conf, scope: string, days: number): Promise<string> {
  const scopes = parseScopes(scope);
  if (scopes === null) throw new AdminError("--scope must be a list of read, submit and manage");
  if (!(days > 0 && days <= DAYS_MAX)) throw new AdminError(`--days must be more than 0 and at most ${DAYS_MAX}`);
  const now_s = Math.floor(Date.now() / 1000);
  const { text, record } = newToken({ user: userInfo().username, scopes, now_s, end_s: now_s + Math.round(days * DAY_S) });
  await changeTokens(conf.home, (records) => {
    const valid = records.filter(({ end_s }) => end_s > now_s);
    if (valid.length >= TOKENS_MAX) throw new AdminError(`there are ${TOKENS_MAX} tokens: revoke some`);
    return [...valid, record];
  });
  return text;
}

function tokenList(conf: Conf): string {
  const tokens = readTokens(conf.home);
  if (tokens.length === 0) return "There is no token: partita token create --scope read";
  const stamper = localStamper();
  const now_s = Date.now() / 1000;
  const rows = tokens.map(({ id, user, scopes, end_s }) => [
    id,
    user,
    scopes.join(","),
    end_s <= now_s ? `${stamper.stamp(end_s * 1000)} (expired)` : stamper.stamp(end_s * 1000),
  ]);
  return table(["id", "user", "scopes", "end"], rows).join("\n");
}

async function revokeToken(conf: Conf, id: string): Promise<string> {
  await changeTokens(conf.home, (records) => {
    const rest = records.filter((record) => record.id !== id);
    if (rest.length === records.length) throw new AdminError(`there is no token ${id}: partita token list`);
    return rest;
  });
  return `Revoked ${id}.`;
}
