// `partita cert`: tokens for new hosts, and certificates of hosts. The server on this host carries the orders out; `show` reads the files of this host.

import { userInfo } from "node:os";
import { connectServer } from "#protocol/client.ts";
import type { CertificateView, IdentityAnswers, IdentityAsk, TokenView } from "#protocol/identity-link.ts";
import type { Conf } from "#support/conf.ts";
import { localStamper } from "#support/local-time.ts";
import { AdminError, isMember } from "../complex/complex-home.ts";
import { askingHost } from "./member.ts";
import { table } from "./table.ts";

/** Sends the request to the server. Throws AdminError with the text of its refusal. */
async function ask<V extends IdentityAsk["verb"]>(conf: Conf, what: IdentityAsk & { readonly verb: V }): Promise<IdentityAnswers[V]> {
  const link = await connectServer(conf);
  try {
    const reply = await link.request({ kind: "identity", ask: what });
    if (!reply.ok) throw new AdminError(reply.text?.trim() ?? `error ${reply.code}`);
    return reply.value as IdentityAnswers[V];
  } finally {
    link.close();
  }
}

export async function certList(conf: Conf, json: boolean): Promise<string> {
  const list = await ask(conf, { verb: "list" });
  if (json) return JSON.stringify(list, null, 2);
  const { authority, next, left, certificates, tokens } = list;
  if (authority === null) return "The complex has no certificate authority yet: the first token makes it (partita cert token).";
  const lines = [`Authority ${colons(authority.fingerprint)}, until ${time(authority.until_s)}`];
  if (next !== null) lines.push(`Next      ${colons(next.fingerprint)}, until ${time(next.until_s)}${leftText(left)}`);
  if (certificates.length > 0) lines.push("", ...table(CERTIFICATE_HEAD, certificates.map(certificateCells)));
  if (tokens.length > 0) lines.push("", ...table(TOKEN_HEAD, tokens.map(tokenCells)));
  return lines.join("\n");
}

const CERTIFICATE_HEAD = ["host", "role", "standing", "until", "serial"];
const certificateCells = (each: CertificateView): readonly string[] => [
  each.host,
  each.user === null ? each.role : `user ${each.user}`,
  each.standing,
  time(each.until_s),
  each.serial,
];
const TOKEN_HEAD = ["token", "for", "standing", "until"];
const tokenCells = (each: TokenView): readonly string[] => [each.id, beneficiary(each), each.standing, time(each.expires_s)];

function beneficiary({ user, host }: { readonly user: string | null; readonly host: string | null }): string {
  if (user === null) return host ?? "any new host";
  return `user ${user} on ${host ?? "any host"}`;
}

/**
 * A token to make. user null: it is for a host that joins; host null then means any name that has no certificate. Otherwise it is for a certificate of this
 * user; host null then means any host.
 */
export type TokenWish = { readonly host: string | null; readonly user: string | null; readonly hours: number };

export async function certToken(conf: Conf, { host, user, hours }: TokenWish): Promise<string> {
  const life_s = Math.round(hours * 3600);
  if (!(life_s >= 1)) throw new AdminError("--hours: a token must be valid for a second at least");
  const { token, id, expires_s } = await ask(conf, { verb: "make-token", host, user, life_s });
  const where = user === null ? "On the new host" : `As ${user} on ${host ?? "the login host"}`;
  const command = user === null ? `join ${conf.server_host}` : "cert user";
  return [
    `Token ${id} for ${beneficiary({ user, host })}, until ${time(expires_s)}. ${where}:`,
    "",
    `    partita ${command} --token ${token}`,
  ].join("\n");
}

/** Gets a certificate of the caller, who may be any user, on a host that has joined. */
export async function certUser(conf: Conf, text: string): Promise<string> {
  if (!isMember(conf)) throw new AdminError("on the server's host users need no certificate");
  const { parseToken } = await import("#identity/token.ts");
  const { fetchUserCertificate } = await import("#protocol/host-questions.ts");
  const token = parseToken(text);
  if (token === null) throw new AdminError("--token: this is not a token; copy all of what partita cert token printed");
  const { path, user, until_s } = await fetchUserCertificate(askingHost(conf), token, userInfo().username);
  return `${user} has a certificate for this host, until ${time(until_s)}: ${path}`;
}

export async function certWithdraw(conf: Conf, token: string): Promise<string> {
  await ask(conf, { verb: "withdraw-token", id: token });
  return `Token ${token} is withdrawn.`;
}

export async function certRevoke(conf: Conf, host: string): Promise<string> {
  const { revoked } = await ask(conf, { verb: "revoke-host", host });
  return revokedText(host, revoked);
}

export async function certRevokeUser(conf: Conf, user: string): Promise<string> {
  const { revoked } = await ask(conf, { verb: "revoke-user", user });
  return revokedText(user, revoked);
}

const revokedText = (name: string, revoked: number): string =>
  revoked === 0 ? `${name} had no valid certificate.` : `${name}: ${revoked === 1 ? "1 certificate" : `${revoked} certificates`} revoked.`;

/** Gets a new certificate for this host. If the server runs on this host, it is the certificate of the server. */
export async function certRenew(conf: Conf, due: boolean): Promise<string> {
  if (isMember(conf)) {
    const { renewCertificate, renewDue } = await import("#protocol/host-questions.ts");
    const { until_s, renewed } = due
      ? await renewDue(askingHost(conf), Date.now() / 1000)
      : { until_s: await renewCertificate(askingHost(conf)), renewed: "both" };
    if (renewed === "both") return `This host has a new certificate, until ${time(until_s)}.`;
    const users = renewed === "users" ? " Its users have a new one." : "";
    return `The certificate of this host is valid until ${time(until_s)}.${users}`;
  }
  if (due) throw new AdminError("--due is for hosts that have joined: the server renews its own certificate");
  const { until_s } = await ask(conf, { verb: "renew-server" });
  return `The server has a new certificate, until ${time(until_s)}.`;
}

/**
 * Creates a new authority. finish: creates none; instead, the new authority that was created before replaces the present one. force: finishes even if some
 * hosts have no certificate of the new authority.
 */
export async function certRotate(conf: Conf, finish: boolean, force: boolean): Promise<string> {
  if (force && !finish) throw new AdminError("--force goes with --finish");
  if (!finish) {
    const { left } = await ask(conf, { verb: "rotate" });
    return [
      `The new authority signs from now on${leftText(left)}.`,
      "Each mom takes its certificate within six hours, or at once by partita cert renew on its host. Then:  partita cert rotate --finish",
    ].join("\n");
  }
  const { out } = await ask(conf, { verb: "finish-rotation", force });
  return `The new authority has replaced the former one.${out.length === 0 ? "" : ` These hosts must join again: ${out.join(" ")}`}`;
}

const leftText = (left: readonly string[]): string => (left.length === 0 ? "" : `; hosts without a certificate of it: ${left.join(" ")}`);

/** Describes the identity of this host, as its files give it. */
export async function certShow(conf: Conf, json: boolean): Promise<string> {
  const { readCredentials, splitPem } = await import("#identity/files/credentials.ts");
  const { readCertificate } = await import("#identity/x509/certificate.ts");
  const credentials = readCredentials(conf.home);
  if (credentials === null)
    throw new AdminError(`${conf.home}/identity holds no certificate: this host has not joined a complex over the network`);
  const { identity, serial, from_s, until_s, fingerprint } = readCertificate(credentials.certificate);
  const authorities = splitPem(credentials.authority).certificates.map(readCertificate);
  if (identity === null) throw new AdminError("the certificate is not one of a Partita host");
  const facts = {
    host: identity.host,
    role: identity.role,
    serial,
    from_s,
    until_s,
    fingerprint,
    authorities: authorities.map((each) => each.fingerprint),
  };
  if (json) return JSON.stringify(facts, null, 2);
  return table(["host", "role", "until", "serial"], [[facts.host, facts.role, time(until_s), serial]])
    .concat("", ...authorities.map((each) => `Authority ${colons(each.fingerprint)}, until ${time(each.until_s)}`))
    .join("\n");
}

/** Writes a fingerprint in the form of openssl: `AB:CD`. */
const colons = (digits: string): string => (digits.toUpperCase().match(/../g) ?? []).join(":");

const stamper = localStamper();
const time = (at_s: number): string => stamper.stamp(at_s * 1000);
