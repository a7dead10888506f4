// The keys and certificates that a user's commands show to a server on another host. Texts are PEM.
//
// U1. PBS_HOME/identity/login.pem says from which host a user calls. In system mode every user of the host can read its key, because every user's commands use
//     it: it proves the host and nothing of the user.
// U2. A certificate of a user is in the user's own directory. A key there that others may read, or that belongs to another user, is not used.
// U3. A login.pem that group or others may write, or that belongs to another user than root and the caller, is not used: that user could
//     make the caller's commands call in the name of another host. In user mode it is not used either if group or others may read it.

import { mkdirSync, readFileSync, statSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { codeOf, messageOf } from "#support/caught.ts";
import { writeWholeFile } from "#support/whole-file.ts";
import { AUTHORITY_FILE, type Credentials, CredentialsError, directoryOf, splitPem } from "./credentials.ts";

const LOGIN_FILE = "login.pem";
const OTHERS = 0o077;
const OTHERS_WRITE = 0o022;

export const loginFile = (home: string): string => join(directoryOf(home), LOGIN_FILE);

/**
 * Reads the key and certificate of U1. home: PBS_HOME; own: the complex belongs to one user, the caller (user mode). Returns null if
 * there is no login.pem: users of this host then cannot reach a server on another host. Throws CredentialsError (U3).
 */
export function readLogin(home: string, own: boolean): Credentials | null {
  const path = loginFile(home);
  const text = readText(path);
  if (text === null) return null;
  const { mode, uid } = statSync(path);
  if ((mode & (own ? OTHERS : OTHERS_WRITE)) !== 0)
    throw new CredentialsError(`${path} can be ${own ? "read" : "written"} by group or others: it is not used`);
  if (uid !== 0 && uid !== process.geteuid?.()) throw new CredentialsError(`${path} belongs to another user: it is not used`);
  return credentialsIn(path, text, home);
}

/** Writes the key and certificate of U1. own: the complex belongs to one user, who alone may read the key (user mode). Throws the file system's error. */
export function writeLogin(home: string, { key, certificate }: Pick<Credentials, "key" | "certificate">, own: boolean): void {
  writeWholeFile(loginFile(home), `${certificate}${key}`, own ? 0o600 : 0o644);
}

/** server: PBS_SERVER; host: the node name of this host. A directory can be shared between hosts, so the name of the file has both. */
export type UserPlace = { readonly server: string; readonly host: string };

/** The file of the caller's own certificate. The caller's home directory is taken from the system's user database, whatever the environment says. */
const userFile = ({ server, host }: UserPlace): string =>
  join(userInfo().homedir, ".partita", "identity", `${server.toLowerCase()}@${host.toLowerCase()}.pem`);

/** Reads the caller's own certificate. home: PBS_HOME, which has the authority's certificate. Returns null if the caller has none. Throws CredentialsError. */
export function readUserCredentials(home: string, place: UserPlace): Credentials | null {
  const path = userFile(place);
  const text = readText(path);
  if (text === null) return null;
  const { mode, uid } = statSync(path);
  if ((mode & OTHERS) !== 0 || uid !== process.geteuid?.())
    throw new CredentialsError(`${path} can be read by group or others, or belongs to another user: it is not used`);
  return credentialsIn(path, text, home);
}

/** Writes the caller's own certificate. Returns the path of the file. Throws the file system's error. */
export function writeUserCredentials(place: UserPlace, { key, certificate }: Pick<Credentials, "key" | "certificate">): string {
  const path = userFile(place);
  mkdirSync(join(path, ".."), { recursive: true, mode: 0o700 });
  writeWholeFile(path, `${certificate}${key}`, 0o600);
  return path;
}

function credentialsIn(path: string, text: string, home: string): Credentials {
  const { certificates, key } = splitPem(text);
  const [certificate] = certificates;
  if (certificate === undefined || key === null) throw new CredentialsError(`${path} holds no certificate with its key`);
  const authority = readText(join(directoryOf(home), AUTHORITY_FILE));
  if (authority === null) throw new CredentialsError(`${directoryOf(home)} holds no certificate of an authority`);
  return { key, certificate, authority };
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw new CredentialsError(messageOf(error), { cause: error });
  }
}
