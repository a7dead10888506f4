// The server's side of a user's proof over TLS (exchange.ts).
//
// V1. Nothing of a client is served before its user is proved. Whatever it sends after its proof and before the answer ends the connection.
// V2. Clients that have not proved their user yet are bounded, each host has its share of them, and each client has little time.
// V3. A client that leaves before its user is proved counts like one that is refused. Faults of the server's own host count against nobody.

import type { TLSSocket } from "node:tls";
import type { HostIdentity } from "#identity/peer.ts";
import { messageOf } from "#support/caught.ts";
import { isRecord } from "#support/guards.ts";
import { waitingRoom } from "../bounds/waiting-room.ts";
import { decodeFrame, encodeFrame, FRAME_END } from "../wire/frame.ts";
import { setInbox } from "../wire/ipc.ts";
import type { Limits } from "../wire/limits.ts";
import { PBSE_BADCRED, type Refusal } from "../wire/link-server.ts";
import type { ProofHooks, UserProofs } from "../wire/tls-listener.ts";
import { plainAddress } from "../wire/unproved.ts";
import { bindingOf, PROVE, PROVED } from "./exchange.ts";

/**
 * The outcome of a proof. fault: why the user is not proved, in words for the client and for the log. is_own: the fault lies on
 * the server's host, and says nothing about the client.
 */
export type UserVerdict =
  | { readonly ok: true; readonly uid: number; readonly gid: number }
  | { readonly ok: false; readonly fault: string; readonly is_own?: true };

/** What a client has proved at its end. is_gone: it has left before the answer. */
type Outcome = { readonly verdict: UserVerdict; readonly is_gone: boolean };

/** Determines the user. binding: identifies the connection. Never rejects. */
export type ProveUser = (identity: HostIdentity, credential: string | null, binding: string) => Promise<UserVerdict>;

type ProofLimits = Pick<Limits, "unproved_users_max" | "proof_ms_max" | "proof_chars_max">;

/** Makes the object that examines the proofs of a listener's clients. */
export function userProofs(limits: ProofLimits, prove: ProveUser, { failed, say }: ProofHooks): UserProofs {
  const room = waitingRoom<TLSSocket>({
    max: limits.unproved_users_max,
    own: [],
    turnOut(socket) {
      say("too many clients that have not proved their user: one is ended");
      socket.destroy();
    },
  });
  return {
    async take(socket, identity) {
      // A socket forgets the address of its peer when it closes.
      const address = socket.remoteAddress ?? "";
      room.enter(socket, identity.host);
      socket.once("close", () => room.leave(socket));
      const { verdict, is_gone } = await proofOf(socket, limits, async (credential) => prove(identity, credential, bindingOf(socket)));
      room.leave(socket);
      if (!verdict.ok && verdict.is_own !== true) failed(address);
      if (is_gone) return null;
      if (verdict.ok) {
        const { uid, gid } = verdict;
        return {
          kind: "peer",
          peer: { pid: 0, uid, gid, host: identity, address: plainAddress(socket.remoteAddress ?? "") },
          greeting: encodeFrame(PROVED, {}),
        };
      }
      return { kind: "refused", refusal: refusalOf(verdict.fault, identity) };
    },
  };
}

const refusalOf = (fault: string, { host }: HostIdentity): Refusal => ({
  problem: `${fault}, from host ${host}`,
  code: PBSE_BADCRED,
  text: `Invalid credential: ${fault}`,
});

/** Reads the one frame and determines its user (V1). If the client leaves after it has sent its proof, this resolves when the proof has been judged (V3). */
function proofOf(
  socket: TLSSocket,
  { proof_ms_max, proof_chars_max }: ProofLimits,
  judge: (credential: string | null) => Promise<UserVerdict>,
): Promise<Outcome> {
  return new Promise((resolve) => {
    let text = "";
    let is_judged = false;
    let is_gone = false;
    // Once the client has sent its proof, the server's host checks it, and only this host can be slow then.
    const late = (): void => end({ ok: false, fault: "the proof took too long", ...(is_judged ? { is_own: true } : {}) });
    const timer = setTimeout(late, proof_ms_max).unref();
    const end = (verdict: UserVerdict): void => {
      clearTimeout(timer);
      resolve({ verdict, is_gone });
    };
    socket.once("close", () => {
      is_gone = true;
      if (!is_judged) end({ ok: false, fault: "the client has left" });
    });
    setInbox(socket, (chunk) => {
      if (is_judged) return end({ ok: false, fault: "a frame before the answer to the proof" });
      text += chunk;
      const length = text.indexOf(FRAME_END);
      if (Math.max(length, 0) > proof_chars_max || (length < 0 && text.length > proof_chars_max))
        return end({ ok: false, fault: "the proof is too long" });
      if (length < 0) return;
      const credential = length + 1 < text.length ? undefined : credentialIn(text.slice(0, length));
      if (credential === undefined) return end({ ok: false, fault: "the first frame is no proof" });
      is_judged = true;
      judge(credential).then(end, (error: unknown) => end({ ok: false, fault: messageOf(error) }));
    });
  });
}

/** Returns the credential in the frame. undefined: the frame is not a proof. */
function credentialIn(text: string): string | null | undefined {
  try {
    const { type, data } = decodeFrame(text, new Set([PROVE]));
    const credential = type === PROVE && isRecord(data) ? data["credential"] : undefined;
    return typeof credential === "string" || credential === null ? credential : undefined;
  } catch {
    return undefined;
  }
}
