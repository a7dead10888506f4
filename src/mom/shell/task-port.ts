// The TCP port on which this mom accepts requests of the moms of other hosts (src/protocol/task-link.ts K3). It is open only on a host that has joined a complex
// with several hosts (docs/identity.md).
//
// P1. A peer needs a certificate of the complex that was not revoked, as far as this host knows. What a host may ask for is decided for each request
//     (../run/tasks.ts).
//     Open links are reviewed, at once when this host hears of a revocation: a link whose certificate was revoked or has
//     expired ends.
// P2. When the files of this host's identity change, new connections are shown the new certificate.

import { statSync } from "node:fs";
import { join } from "node:path";
import { type Credentials, CredentialsError, readCredentials } from "#identity/files/credentials.ts";
import { revokedSerials } from "#identity/files/revoked.ts";
import { hostName } from "#identity/host-name.ts";
import type { HostIdentity } from "#identity/peer.ts";
import { ALPN } from "#protocol/wire/alpn.ts";
import { LIMITS } from "#protocol/wire/limits.ts";
import type { LinkHandlers } from "#protocol/wire/server-link.ts";
import type { TlsLinkServer } from "#protocol/wire/tls-listener.ts";
import { messageOf } from "#support/caught.ts";

/** Time in ms until a port that could not be opened is tried again. */
const RETRY_MS = 30_000;

export type TaskPortOptions = LinkHandlers & {
  /** PBS_HOME, which holds the identity of this host */
  readonly home: string;
  /** PBS_MOM_SERVICE_PORT */
  readonly port: number;
  /** PBS_SERVER */
  readonly server: string;
  /** accepted frame types */
  readonly types: readonly string[];
  readonly complain: (text: string) => void;
  /** called when open links are reviewed: the mom's links to other hosts must be reviewed, too */
  readonly reviewed: () => void;
};

export class TaskPort {
  readonly #options: TaskPortOptions;
  #listener: TlsLinkServer | null = null;
  /** the files of the identity when they were read last */
  #seen = "";
  #is_opening = false;
  #retry_ms = 0;
  /** the list of revoked certificates at the last review, and the time of the next one */
  #reviewed = "";
  #review_ms = 0;
  #closed = false;

  constructor(options: TaskPortOptions) {
    this.#options = options;
    this.look();
  }

  /**
   * Opens the port if this host has an identity now, reads the identity again if its files have changed, and reviews the open
   * links when it is time. Called every second.
   */
  look(now_ms = performance.now()): void {
    this.#review(now_ms);
    const stamp = stampOf(this.#options.home);
    if (stamp === "" || stamp === this.#seen || this.#is_opening || now_ms < this.#retry_ms) return;
    this.#is_opening = true;
    void this.#use(stamp).finally(() => {
      this.#is_opening = false;
    });
  }

  close(): void {
    this.#closed = true;
    void this.#listener?.close();
  }

  #review(now_ms: number): void {
    const revoked = stampOf(this.#options.home, ["revoked.json"]);
    if (revoked === this.#reviewed && now_ms < this.#review_ms) return;
    this.#reviewed = revoked;
    this.#review_ms = now_ms + LIMITS.mom_review_ms;
    this.#listener?.review();
    this.#options.reviewed();
  }

  async #use(stamp: string): Promise<void> {
    const { home, port, complain } = this.#options;
    try {
      const credentials = ownCredentials(home);
      if (this.#listener === null) await this.#listen(credentials);
      else this.#listener.show(credentials);
      this.#seen = stamp;
    } catch (error) {
      this.#retry_ms = performance.now() + RETRY_MS;
      complain(`port ${port}: ${messageOf(error)}: moms of other hosts cannot reach this mom`);
    }
  }

  async #listen(credentials: Credentials): Promise<void> {
    // A mom on a machine of its own never loads TLS.
    const { listenEverywhere } = await import("#protocol/wire/tls-listener.ts");
    const { home, port, server, types } = this.#options;
    const opened = await listenEverywhere({
      ...this.#options,
      port,
      types,
      protocol: ALPN.mom,
      credentials,
      fault: (identity) => peerFault(identity, server, home),
      questions: null,
      limits: { user_connections_max: LIMITS.mom_connections_max },
    });
    if (this.#closed) return opened.close();
    this.#listener = opened;
  }
}

/** Returns the identity of this host. Throws CredentialsError. */
export function ownCredentials(home: string): Credentials {
  const found = readCredentials(home);
  if (found === null) throw new CredentialsError(`${home}/identity holds no certificate`);
  return found;
}

/**
 * Returns why the peer is refused (P1), in words for the log; null: it is accepted. A server of another name does not belong to this
 * complex, whoever signed its certificate.
 */
function peerFault({ role, host, serial }: HostIdentity, server: string, home: string): string | null {
  if (role === "server" && host !== hostName(server)) return `the peer is the server ${host}, not ${server}`;
  try {
    return revokedSerials(home).has(serial) ? `the certificate ${serial} of ${host} was revoked` : null;
  } catch (error) {
    return `nobody is trusted: ${messageOf(error)}`;
  }
}

/** Returns a text that changes when the files of the identity change; "": there are none. */
function stampOf(home: string, names = ["host.pem", "ca.crt"]): string {
  try {
    const stats = names.map((name) => statSync(join(home, "identity", name)));
    return stats.map(({ ino, mtimeMs }) => `${ino} ${mtimeMs}`).join();
  } catch {
    return "";
  }
}
