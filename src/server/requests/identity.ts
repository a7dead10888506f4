// `partita cert`: questions and orders to the certificate authority. The shell keeps the authority, carries the order out and answers. Only root may ask (user mode:
// the complex's own user): a token makes a host a part of the complex.

import { hostName } from "#identity/host-name.ts";
import { TERMS } from "#identity/terms.ts";
import { PBSE, Reject, reject } from "#model/pbse.ts";
import type { IdentityAsk } from "#protocol/identity-link.ts";
import type { IdentityRequest } from "#protocol/messages.ts";
import type { Answer, Transaction } from "../engine/transaction.ts";

export function identity(tx: Transaction, { ask }: IdentityRequest): Answer {
  if (!tx.who.root) throw reject(PBSE.PERM);
  tx.act({ kind: "ask-authority", ask: checked(ask), token: tx.token });
  return "deferred";
}

function checked(ask: IdentityAsk): IdentityAsk {
  switch (ask.verb) {
    case "make-token":
      if (ask.life_s > TERMS.token_s_max) throw new Reject(PBSE.BADATVAL, `a token is valid for at most ${TERMS.token_s_max / 3600} hours`);
      return { ...ask, host: ask.host === null ? null : named(ask.host) };
    case "revoke-host":
      return { ...ask, host: named(ask.host) };
    case "withdraw-token":
      return { ...ask, id: ask.id.toLowerCase() };
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

function named(host: string): string {
  const name = hostName(host);
  if (name === null) throw new Reject(PBSE.BADATVAL, `${JSON.stringify(host)} cannot be the name of a host`);
  return name;
}
