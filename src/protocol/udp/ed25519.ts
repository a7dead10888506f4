// Ed25519 (RFC 8032) as the signature of commands to a group of moms. The key pair lives as long as the server's process, and
// moms get its public half over TLS.

import { createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from "node:crypto";

/** Makes a key pair. public_key: SubjectPublicKeyInfo (RFC 8410) in base64 */
export function makeSigner(): { readonly public_key: string; sign(bytes: Uint8Array): Uint8Array } {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  return {
    public_key: publicKey.export({ format: "der", type: "spki" }).toString("base64"),
    sign: (bytes) => sign(null, bytes, privateKey),
  };
}

/** Returns a function that checks signatures. The last key is kept, because it seldom changes. */
export function verifier(): (public_key: string, bytes: Uint8Array, signature: Uint8Array) => boolean {
  let text = "";
  let key: KeyObject | null = null;
  return (public_key, bytes, signature) => {
    if (public_key !== text) {
      key = keyIn(public_key);
      text = public_key;
    }
    return key !== null && verify(null, bytes, key, signature);
  };
}

/** Returns the key that a text contains; null: it contains no key of Ed25519. */
function keyIn(text: string): KeyObject | null {
  try {
    const key = createPublicKey({ key: Buffer.from(text, "base64"), format: "der", type: "spki" });
    return key.asymmetricKeyType === "ed25519" ? key : null;
  } catch {
    return null;
  }
}
