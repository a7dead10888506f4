// `partita cert`: questions and orders to the certificate authority. The shell has the authority, carries out the order and
// answers. Only root may ask (user mode: the complex's own user): a token makes a host a part of the complex.

import { hostName } from "#identity/host-name.ts";
import { TERMS } from "#identity/terms.ts";
import { isUserName } from "#identity/user-name.ts";
import { PBSE, Reject, reject } from "#model/pbse.ts";
import type { IdentityAsk } from "#protocol/identity-link.ts";
import type { IdentityRequest } from "#protocol/messages.ts";
import type { Answer, Transaction } from "../engine/transaction.ts";

export function identity(tx: Transaction, { ask }: IdentityRequest): Answer {
  if (!tx.who.root) throw reject(PBSE.PERM);
  tx.act({ kind: "ask-authority", ask: checked(tx, ask), token: tx.token });
  return "deferred";
}

function checked(tx: Transaction, ask: IdentityAsk): IdentityAsk {
  switch (ask.verb) {
    case "make-token":
      if (ask.life_s > TERMS.token_s_max) throw new Reject(PBSE.BADATVAL, `a token is valid for at most ${TERMS.token_s_max / 3600} hours`);
      return { ...ask, host: ask.host === null ? null : named(ask.host), user: ask.user === null ? null : certified(tx, ask.user) };
    case "revoke-host":
      return { ...ask, host: named(ask.host) };
    case "withdraw-token":
      return { ...ask, id: ask.id.toLowerCase() };
    case "revoke-user":
    case "list":
    case "renew-server":
    case "rotate":
    case "finish-rotation":
      return ask;
    default: {
      const unreachable: never = ask;
      return unreachable;
    }
  }
}

/** Returns the name of a user whom the server knows. The server resolves users' names, so a certificate of an unknown user would be useless. */
function certified(tx: Transaction, user: string): string {
  if (!isUserName(user)) throw new Reject(PBSE.BADATVAL, `${JSON.stringify(user)} cannot be the name of a user in a certificate`);
  if (!tx.config.userExists(user)) throw new Reject(PBSE.BADATVAL, `the server's host has no user ${user}`);
  return user;
}

function named(host: string): string {
  const name = hostName(host);
  if (name === null) throw new Reject(PBSE.BADATVAL, `${JSON.stringify(host)} cannot be the name of a host`);
  return name;
}
