// Who a user of another host is, by certificate and by munge credential.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { HostIdentity } from "#identity/peer.ts";
import { claimText } from "#protocol/proof/claim.ts";
import { MungeError, type MungeUser } from "#protocol/proof/munge.ts";
import type { UserVerdict } from "#protocol/proof/user-proof.ts";
import { mungeOf, userProver } from "#server/shell/user-prover.ts";

const BINDING = "0a".repeat(32);
const NOW_S = 1_800_000_000;
const claim = (server = "head", binding = BINDING): string => claimText({ server, binding, made_s: NOW_S });

const users = [
  { name: "root", uid: 0, gid: 0, home: "/root", shell: "/bin/sh" },
  { name: "alice", uid: 1000, gid: 100, home: "/home/alice", shell: "/bin/sh" },
  { name: "bob", uid: 1001, gid: 101, home: "/home/bob", shell: "/bin/sh" },
];
const database = {
  userByName: (name: string) => users.find((user) => user.name === name) ?? null,
  userByUid: (uid: number) => users.find((user) => user.uid === uid) ?? null,
};
/** A munged that knows these credentials. */
const CREDENTIALS: Readonly<Record<string, MungeUser>> = {
  "MUNGE:alice:": { uid: 1000, gid: 4711, payload: claim() },
  "MUNGE:root:": { uid: 0, gid: 0, payload: claim() },
  "MUNGE:nobody:": { uid: 65534, gid: 65534, payload: claim() },
  "MUNGE:standby:": { uid: 1000, gid: 100, payload: claim("standby") },
  "MUNGE:elsewhere:": { uid: 1000, gid: 100, payload: claim("head", "0b".repeat(32)) },
  "MUNGE:slurm:": { uid: 1000, gid: 100, payload: "" },
};
const munge = async () => ({
  decode: async (credential: string) => {
    const found = CREDENTIALS[credential];
    if (found === undefined) throw new Error("the credential was used before");
    return found;
  },
});

const login: HostIdentity = { host: "login1", role: "login", serial: "1" };
const certified = (user: string): HostIdentity => ({ host: "login1", role: "user", user, serial: "2" });
const options = { system: true, server: "head", own_uid: 0, users: database, munge, now_s: () => NOW_S };
const said = (verdict: UserVerdict): string => (verdict.ok ? `${verdict.uid}:${verdict.gid}` : verdict.fault);

test("system mode: a certificate of a user, or the certificate of a host and a munge credential", async () => {
  const prove = userProver(options);
  // biome-ignore format: a table
  const rows: readonly (readonly [identity: HostIdentity, credential: string | null, said: RegExp])[] = [
    [login,              "MUNGE:alice:",     /^1000:100$/],
    [login,              "MUNGE:root:",      /^0:0$/],
    [login,              null,               /^the user of this host is not proved$/],
    [login,              "MUNGE:nobody:",    /^the server's host has no user with the uid 65534$/],
    [login,              "MUNGE:standby:",   /refused: it was made for the server standby$/],
    [login,              "MUNGE:elsewhere:", /refused: it was made for another connection$/],
    [login,              "MUNGE:slurm:",     /refused: it was not made for a Partita server$/],
    [login,              "MUNGE:again:",     /refused: the credential was used before$/],
    [login,              "uid=0",            /^this is no munge credential$/],
    [certified("alice"), null,               /^1000:100$/],
    [certified("alice"), "MUNGE:root:",      /^1000:100$/],
    [certified("carol"), null,               /^the server's host has no user carol$/],
  ];
  for (const [identity, credential, expected] of rows)
    assert.match(said(await prove(identity, credential, BINDING)), expected, `${identity.role} ${credential}`);
  const without = userProver({ ...options, munge: null });
  assert.match(said(await without(login, "MUNGE:alice:", BINDING)), /takes no munge credentials/);
});

test("a munged of the server's host that does not answer is told apart from a credential that it refuses (U3)", async () => {
  const failing = (error: Error) => userProver({ ...options, munge: async () => ({ decode: () => Promise.reject(error) }) });
  const own = await failing(new MungeError("munged does not answer", true))(login, "MUNGE:alice:", BINDING);
  assert.deepEqual(own, { ok: false, fault: "the munge credential cannot be checked: munged does not answer", is_own: true });
  const refused = await failing(new MungeError("the credential was used before", false))(login, "MUNGE:alice:", BINDING);
  assert.deepEqual(refused, { ok: false, fault: "the munge credential is refused: the credential was used before" });
});

test("user mode: the certificate for users of a host is its one user's; another user has none", async () => {
  const prove = userProver({ ...options, system: false, own_uid: 1000 });
  assert.equal(said(await prove(login, null, BINDING)), "1000:100");
  assert.equal(said(await prove(login, "MUNGE:root:", BINDING)), "1000:100");
  assert.equal(said(await prove(certified("alice"), null, BINDING)), "1000:100");
  assert.equal(said(await prove(certified("bob"), null, BINDING)), "the complex is one of another user");
});

test("PBS_SUPPORTED_AUTH_METHODS says whether munge is accepted", () => {
  const taken = (methods?: string): boolean =>
    mungeOf({ values: methods === undefined ? {} : { PBS_SUPPORTED_AUTH_METHODS: methods } }) !== null;
  assert.deepEqual([taken(), taken("munge"), taken("resvport, MUNGE"), taken("resvport"), taken("")], [true, true, true, false, false]);
});
