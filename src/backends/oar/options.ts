// Reads the options of a cluster of type oar, and its file of credentials. Pure.

import type { ClusterSettings } from "../contract/cluster.ts";
import { chosenOptions } from "../contract/cluster-jobs.ts";
import { BackendError } from "../contract/fault.ts";

/** none: the API asks for no identity. ident: the header X-REMOTE-IDENT names the user; the API must trust this host. password: Basic. jwt: Bearer. */
const AUTHS = ["none", "ident", "password", "jwt"] as const;
type Auth = (typeof AUTHS)[number];

export type OarOptions = {
  /** the address of the REST API, without a slash at its end; null: OAR's commands are used */
  readonly url: string | null;
  readonly auth: Auth;
  /** a file with a line `USER SECRET` for each user; the user * stands for all others */
  readonly credentials: string | null;
  /** a file with certificates of authorities */
  readonly cacert: string | null;
  /** directory of OAR's commands; null: the usual directories */
  readonly bin: string | null;
  readonly queue: string | null;
  readonly timeout_ms: number;
};

export function oarOptions(settings: ClusterSettings): OarOptions {
  const chosen = chosenOptions(settings, ["url", "auth", "credentials", "cacert", "bin", "queue"]);
  const { url = null, credentials = null, cacert = null, bin = null, queue = null, timeout_ms } = chosen;
  const auth = AUTHS.find((each) => each === (chosen.auth ?? (credentials === null ? "none" : "password")));
  if (auth === undefined) throw wrong(`option auth: one of ${AUTHS.join(", ")}`);
  if (url === null && (chosen.auth !== undefined || credentials !== null || cacert !== null))
    throw wrong("options auth, credentials and cacert belong to the REST API, which option url names");
  if (url !== null && !/^https?:\/\/[^\s/?#@]+(?:\/[^\s?#]*)?$/.test(url))
    throw wrong("option url: an address such as https://oar.example.org/oarapi is expected");
  if (url !== null && bin !== null) throw wrong("options url and bin exclude each other");
  if ((auth === "password" || auth === "jwt") && credentials === null) throw wrong(`option auth=${auth} needs option credentials`);
  return { url: url === null ? null : url.replace(/\/+$/, ""), auth, credentials, cacert, bin, queue, timeout_ms };
}

/** Reads a file of credentials: the secret of each user. Empty lines and lines that begin with # do not count. */
export function readSecrets(text: string): ReadonlyMap<string, string> {
  const secrets = new Map<string, string>();
  for (const [at, line] of text.split("\n").entries()) {
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#")) continue;
    const [, user = "", secret = ""] = /^(\S+)\s+(\S.*)$/.exec(trimmed) ?? [];
    if (user === "") throw wrong(`credentials: line ${at + 1}: USER SECRET is expected`);
    secrets.set(user, secret);
  }
  return secrets;
}

/** Returns the headers that tell OAR the user of a request. user null: no particular user, for requests of lists. */
export function identityHeaders(auth: Auth, user: string | null, secrets: ReadonlyMap<string, string>): Readonly<Record<string, string>> {
  if (auth === "none") return {};
  if (auth === "ident") return user === null ? {} : { "X-REMOTE-IDENT": user };
  const [name, secret] = secretOf(user, secrets);
  return { authorization: auth === "jwt" ? `Bearer ${secret}` : `Basic ${Buffer.from(`${name}:${secret}`).toString("base64")}` };
}

function secretOf(user: string | null, secrets: ReadonlyMap<string, string>): readonly [name: string, secret: string] {
  const own = user === null ? undefined : secrets.get(user);
  if (user !== null && own !== undefined) return [user, own];
  const [first] = secrets;
  const others = secrets.get("*");
  if (others !== undefined) return [user ?? "*", others];
  if (user === null && first !== undefined) return first;
  throw wrong(`credentials: there is no line for user ${user ?? "*"}`);
}

const wrong = (text: string): BackendError => new BackendError({ kind: "configuration", text });
