// A cipher that hides nothing. Like a real one, it opens only what was sealed with the same key, nonce and header, so that mistakes in their use are found.

import { type Cipher, TAG_BYTES } from "#protocol/datagram/packet.ts";
import { SIGNATURE_BYTES } from "#protocol/multicast/command-packet.ts";

export const toyCipher: Cipher = {
  seal(key, nonce, header, text) {
    const sealed = new Uint8Array(text.length + TAG_BYTES);
    sealed.set(text);
    sealed.set(tagOf([key, nonce, header, text]), text.length);
    return sealed;
  },
  open(key, nonce, header, sealed) {
    const text = sealed.slice(0, -TAG_BYTES);
    const tag = tagOf([key, nonce, header, text]);
    return tag.every((byte, at) => byte === sealed[text.length + at]) ? text : null;
  },
};

/** Returns a signature that anybody can make. It proves that the ends agree about what is signed. */
export const toySignature = (bytes: Uint8Array): Uint8Array => {
  const signature = new Uint8Array(SIGNATURE_BYTES);
  signature.set(tagOf([bytes]));
  return signature;
};
export const isToySignature = (bytes: Uint8Array, signature: Uint8Array): boolean =>
  toySignature(bytes).every((byte, at) => byte === signature[at]);

/** Returns the FNV-1a hash of all bytes, with the length of each part. */
function tagOf(parts: readonly Uint8Array[]): Uint8Array {
  const tag = new Uint8Array(TAG_BYTES);
  const view = new DataView(tag.buffer);
  let hash = 0x811c9dc5;
  const mix = (byte: number): void => {
    hash = Math.imul(hash ^ byte, 0x01000193);
  };
  parts.forEach((part, at) => {
    mix(part.length & 255);
    mix(part.length >> 8);
    for (const byte of part) mix(byte);
    view.setInt32(4 * at, hash);
  });
  return tag;
}
