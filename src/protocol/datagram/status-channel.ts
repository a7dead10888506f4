// The mom's end of the channel over which it reports to the server: seals reports and opens answers (status-desk.ts).

import { type ChannelKeys, type Cipher, DATAGRAM_BYTES_MAX, openPacket, readHeader, sealPacket } from "./packet.ts";
import { type ReplayWindow, replayWindow } from "./replay-window.ts";

export class StatusChannel {
  readonly #cipher: Cipher;
  #keys: ChannelKeys | null = null;
  #next = 0;
  #window: ReplayWindow = replayWindow();

  constructor(cipher: Cipher) {
    this.#cipher = cipher;
  }

  get isOpen(): boolean {
    return this.#keys !== null;
  }

  /** Uses these keys from now on. null: the connection over which the last keys came is lost. */
  take(keys: ChannelKeys | null): void {
    this.#keys = keys;
    this.#next = 0;
    this.#window = replayWindow();
  }

  /** Makes a datagram. The channel must be open. Throws if the text is too long (TEXT_BYTES_MAX). */
  seal(text: string): Uint8Array {
    if (this.#keys === null) throw new Error("no key to seal a report with");
    return sealPacket(this.#cipher, this.#keys, "report", this.#next++, text);
  }

  /** Returns the text of an answer; null: the datagram was not sealed by the server, or was opened before. */
  open(bytes: Uint8Array): string | null {
    if (this.#keys === null || bytes.length > DATAGRAM_BYTES_MAX) return null;
    const header = readHeader(bytes, "heard");
    if (header === null || header.channel !== this.#keys.channel || this.#window.look(header.counter) !== "new") return null;
    const text = openPacket(this.#cipher, this.#keys, bytes);
    if (text !== null) this.#window.note(header.counter);
    return text;
  }
}
