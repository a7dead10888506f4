// Determines the user of a client on another host (docs/identity.md). The certificate names the host, or host and user; a
// munge credential proves the uid.
//
// U1. Nothing that a client says about its user counts. Names are resolved by the users of the server's host.
// U2. In user mode the complex has one user, to whom all its hosts belong: the certificate of a host for users is proof enough.
// U3. A fault of the server's own host is told apart from a fault of the client, because only the latter counts against the
//     address of the client.

import type { HostIdentity } from "#identity/peer.ts";
import { claimFault } from "#protocol/proof/claim.ts";
import type { Munge } from "#protocol/proof/munge.ts";
import type { ProveUser, UserVerdict } from "#protocol/proof/user-proof.ts";
import { confLimits } from "#protocol/wire/limit-keys.ts";
import { LIMITS } from "#protocol/wire/limits.ts";
import { messageOf, nameOf } from "#support/caught.ts";
import type { Conf } from "#support/conf.ts";
import { isRecord } from "#support/guards.ts";
import type { SystemUser, UserDatabase } from "#support/passwd.ts";

export type UserProverOptions = {
  readonly system: boolean;
  /** PBS_SERVER */
  readonly server: string;
  readonly own_uid: number;
  readonly users: Pick<UserDatabase, "userByName" | "userByUid">;
  /** checks credentials; null: the complex takes none */
  readonly munge: (() => Promise<Pick<Munge, "decode">>) | null;
  readonly now_s: () => number;
};

const no = (fault: string): UserVerdict => ({ ok: false, fault });

/** Whether a fault lies on the server's host: its munged does not answer, or libmunge is missing. */
const isOwnFault = (error: unknown): boolean => nameOf(error) === "MungeError" && isRecord(error) && error["is_own"] === true;

export function userProver({ system, server, own_uid, users, munge, now_s }: UserProverOptions): ProveUser {
  const known = (user: SystemUser | null, name: string): UserVerdict =>
    user === null ? no(`the server's host has no user ${name}`) : { ok: true, uid: user.uid, gid: user.gid };

  const decoded = async (credential: string, binding: string): Promise<UserVerdict> => {
    if (munge === null) return no("the server takes no munge credentials (PBS_SUPPORTED_AUTH_METHODS)");
    if (!MUNGE_CREDENTIAL.test(credential)) return no("this is no munge credential");
    try {
      const { uid, payload } = await (await munge()).decode(credential);
      const fault = claimFault(payload, { server, binding, made_s: now_s() });
      return fault === null ? known(users.userByUid(uid), `with the uid ${uid}`) : no(`the munge credential is refused: ${fault}`);
    } catch (error) {
      if (!isOwnFault(error)) return no(`the munge credential is refused: ${messageOf(error)}`);
      return { ok: false, fault: `the munge credential cannot be checked: ${messageOf(error)}`, is_own: true };
    }
  };

  const verdict = async ({ role, user }: HostIdentity, credential: string | null, binding: string): Promise<UserVerdict> => {
    if (!system) {
      const owner = users.userByUid(own_uid);
      if (role === "login" || user === owner?.name) return known(owner, `with the uid ${own_uid}`);
      return no("the complex is one of another user");
    }
    if (role === "user" && user !== undefined) return known(users.userByName(user), user);
    return credential === null ? no("the user of this host is not proved") : decoded(credential, binding);
  };
  return verdict;
}

/** The form of a credential from munge_encode(3): base64 between a prefix and a colon. */
const MUNGE_CREDENTIAL = /^MUNGE:[A-Za-z0-9+/=]+:$/;

/** Returns the function that loads MUNGE; null: PBS_SUPPORTED_AUTH_METHODS names methods, and munge is not among them. */
export function mungeOf({ values }: Pick<Conf, "values">): UserProverOptions["munge"] {
  const methods = values["PBS_SUPPORTED_AUTH_METHODS"];
  if (methods !== undefined && !methods.split(",").some((name) => name.trim().toLowerCase() === "munge")) return null;
  const read = confLimits(values);
  const limits = { ...LIMITS, ...(read.ok ? read.limits : {}) };
  let opened: Promise<Munge> | null = null;
  return () => {
    opened ??= import("#protocol/proof/munge.ts").then(({ openMunge }) =>
      openMunge({
        socket: values["PARTITA_MUNGE_SOCKET"] ?? null,
        calls_max: limits.munge_calls_max,
        waiting_max: limits.munge_waiting_max,
      }),
    );
    return opened;
  };
}
