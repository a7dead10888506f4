// `partita join SERVER --token T`: makes this host a part of a complex (docs/identity.md). It proves the server by the fingerprint in the token, gets a certificate
// and the settings of the complex, and sets up programs, pbs.conf and PBS_HOME.
//
// J1. The key is written to the disk before the request is sent: if the answer is lost, the same call with the same token
//     gets it again.

import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { readJoinKey, splitPem, writeCredentials, writeJoinKey } from "#identity/files/credentials.ts";
import { hostName } from "#identity/host-name.ts";
import { parseToken, type TokenText } from "#identity/token.ts";
import { readCertificate } from "#identity/x509/certificate.ts";
import { makeRequest, newKey } from "#identity/x509/request.ts";
import { renewLogin } from "#protocol/host-questions.ts";
import type { AuthorityToHost, StandbySecrets } from "#protocol/join-link.ts";
import { JOIN_ANSWERS, parseAnswer } from "#protocol/schema-join.ts";
import { askAuthority, fetchAuthority, type Place } from "#protocol/wire/tls-question.ts";
import { writePairKey } from "#server/shell/shared-files.ts";
import { databaseFile } from "#store/store-choice.ts";
import { messageOf } from "#support/caught.ts";
import { CONF_FILE_DEFAULT, SERVER_PORT_DEFAULT, shortHostName } from "#support/conf.ts";
import { PARTITA_VERSION } from "#support/version.ts";
import { writeWholeFile } from "#support/whole-file.ts";
import { AdminError, complexDirectory, confFile, confOf, quote } from "../complex/complex-home.ts";
import { HOME_DEFAULT, setUpMember } from "../installation/init.ts";
import { askingHost } from "./member.ts";

export type JoinOptions = {
  /** name or address of the server's host */
  readonly server: string;
  readonly token: string;
  readonly port: number;
  /** the name of this host in the complex; undefined: its short host name */
  readonly name: string | undefined;
  readonly home: string | undefined;
  readonly prefix: string | undefined;
  /** true: the host runs no mom, because it is only for users and their commands */
  readonly login: boolean;
  /** true: the host has the standby server of the complex (PBS_SECONDARY) */
  readonly standby: boolean;
};

/** Where the host's part of the complex will be. own: it has a directory of its own, and nothing is put in /etc. */
type Target = { readonly file: string; readonly home: string; readonly own: boolean };

/** Difference of clocks above which the user is warned. Certificates tolerate an hour. */
const CLOCK_S_MAX = 60;

/** Carries out `partita join`. Returns the text to print. Throws AdminError. */
export async function joinComplex(options: JoinOptions): Promise<string> {
  process.umask(0o022);
  const token = parseToken(options.token);
  if (token === null) throw new AdminError("--token: this is not a token; copy all of what partita cert token printed");
  const name = options.name ?? shortHostName(hostname());
  if (hostName(name) === null) throw new AdminError(`${JSON.stringify(name)} cannot be the name of a host: --name gives it another one`);
  const target = targetOf(options.home);
  mustBeFree(target);
  const key = readJoinKey(target.home) ?? newKey();
  writeJoinKey(target.home, key);
  const joined = await ask({ host: options.server, port: options.port }, token, { name, key, standby: options.standby });
  const { settings } = joined;
  checkMode(settings.mode, target);
  const { mode, pair } = settings;
  const server = { name: settings.server, host: options.server, port: settings.port };
  const standby = joined.standby === undefined || pair === undefined ? undefined : { port: portIn(pair.secondary) };
  setUpMember({ ...target, mode, exec: options.prefix, server, node: options.name, login: options.login, pair, standby });
  if (joined.standby !== undefined) keepSecrets(target.home, joined.standby);
  writeCredentials(target.home, { key, certificate: joined.certificate, authority: joined.authority });
  return [
    `${name} is a host of ${settings.server} now: configuration ${target.file}, PBS_HOME ${target.home}.`,
    ...(await userLines(target)),
    ...clockLines(joined.now_s),
    ...(options.standby ? standbyLines(target) : options.login ? loginLines(mode, target) : momLines(name, target)),
  ].join("\n");
}

/** What the standby server needs (docs/standby.md). A database.conf of this host is kept: its way to the database may be another one. */
function keepSecrets(home: string, { key, database }: StandbySecrets): void {
  writePairKey(home, key);
  const file = databaseFile({ home });
  if (!existsSync(file)) writeWholeFile(file, database, 0o600);
}

const portIn = (place: string): number => Number(/:([0-9]+)$/.exec(place)?.[1] ?? SERVER_PORT_DEFAULT);

/** Gets the certificate for the users of this host, and returns lines about it. The host has joined already, and its mom can work without this certificate. */
async function userLines({ file }: Target): Promise<readonly string[]> {
  try {
    await renewLogin(askingHost(confOf(file)));
    return [];
  } catch (error) {
    return [`Commands of this host's users cannot reach the server yet: ${messageOf(error)}. Try again:  partita cert renew`];
  }
}

const atHome = ({ file, own }: Target): string => (own ? ` --home ${quote(join(file, ".."))}` : "");

const momLines = (name: string, target: Target): readonly string[] => [
  `Start it:  partita start${atHome(target)}`,
  `On the server, unless the node exists:  qmgr -c "create node ${name}"`,
];

const standbyLines = (target: Target): readonly string[] => [
  `Start it:  partita start${atHome(target)}`,
  `It waits for the server that is active, and takes over when that one is silent. See that ${databaseFile(target)} reaches the database from here.`,
];

const loginLines = (mode: "user" | "system", target: Target): readonly string[] => [
  `Use it:    eval "$(partita env${atHome(target)})"`,
  ...(mode === "user" ? [] : ["Users are known by munge, or by certificates of their own (partita cert token --user NAME)."]),
];

function targetOf(given: string | undefined): Target {
  const asked = given ?? process.env["PARTITA_HOME"];
  if (asked === undefined && process.geteuid?.() === 0) return { file: CONF_FILE_DEFAULT, home: HOME_DEFAULT, own: false };
  const dir = complexDirectory(given, process.env);
  return { file: confFile(dir), home: join(dir, "pbs"), own: true };
}

/** Checks that this host may join: a host that has a server may not; a host that joined before may join again. */
function mustBeFree({ file, home }: Target): void {
  if (!existsSync(file)) return;
  const conf = confOf(file);
  if (conf.start.server && conf.pair === null) throw new AdminError(`${file} describes a host with a server: it cannot join another one`);
  if (conf.home !== home) throw new AdminError(`${file} has another PBS_HOME: ${conf.home}`);
}

function checkMode(mode: "user" | "system", { own }: Target): void {
  if (mode === "system" && process.geteuid?.() !== 0) throw new AdminError("the complex runs in system mode: join as root");
  if (mode === "user" && !own) throw new AdminError("the complex runs in user mode: join as its user, or name a directory by --home");
}

type Asking = { readonly name: string; readonly key: string; readonly standby: boolean };

async function ask(place: Place, token: TokenText, { name, key, standby }: Asking): Promise<AuthorityToHost["joined"]> {
  const authority = await fetchAuthority(place, token.fingerprint);
  const request = makeRequest(name, key);
  const data = { version: PARTITA_VERSION, token: token.id, secret: token.secret, request, ...(standby ? { standby } : {}) };
  const { answer, server } = await askAuthority(place, { authority, own: null, revoked: new Set() }, { type: "join", data }, JOIN_ANSWERS);
  const parsed = parseAnswer(answer.type, answer.data);
  if (!parsed.ok) throw new AdminError(`the server's answer cannot be read: ${parsed.text}`);
  const { value } = parsed;
  if (value.type === "join-refused") throw new AdminError(`the server refuses: ${value.data.text}`);
  if (value.type !== "joined") throw new AdminError(`the server answers something else: ${value.type}`);
  const joined = value.data;
  const { identity } = readCertificate(joined.certificate);
  const isOurs =
    identity?.role === "host" && identity.host === hostName(name) && splitPem(joined.authority).certificates.includes(authority);
  if (!isOurs || hostName(joined.settings.server) !== server) throw new AdminError("the server's answer does not fit the question");
  return joined;
}

function clockLines(now_s: number): readonly string[] {
  const ahead_s = Math.round(Date.now() / 1000 - now_s);
  if (Math.abs(ahead_s) <= CLOCK_S_MAX) return [];
  const way = ahead_s > 0 ? "ahead of" : "behind";
  return [`The clock of this host is ${Math.abs(ahead_s)} s ${way} that of the server: set it before certificates are refused.`];
}
