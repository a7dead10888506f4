// Copies files of one job between this host and other hosts of the complex, over the complex's own channel (../files/far-session.ts).
//
// A1. The site's own program copies instead if pbs.conf names one (PBS_SCP, PBS_RCP), if this host has no identity, or if the other host is not of the complex.
// A2. If a copy fails for a reason that may pass (a cut network, a server that restarts, too many copies at a time), it is tried again for $copy_patience seconds.
//     Each attempt begins the file anew; the other host has removed the incomplete file.
// A3. If the other host has never told the server where it accepts files, a failed connection to it is not tried again: most likely the host accepts none. The copy
//     program then copies instead, if it exists here.

import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { readCredentials } from "#identity/files/credentials.ts";
import { revokedSerials } from "#identity/files/revoked.ts";
import { placeOfFiles } from "#protocol/host-questions.ts";
import type { FilesPlace } from "#protocol/join-link.ts";
import { messageOf } from "#support/caught.ts";
import { FarError, FarSession } from "../files/far-session.ts";
import { actAs } from "../host/posix.ts";
import type { FilePlan } from "../job/agent-link.ts";

const RETRY_MS_FIRST = 250;
const RETRY_MS_MAX = 10_000;

export class FarCopies {
  readonly #plan: FilePlan;
  readonly #sessions = new Map<string, FarSession>();
  /** hosts to and from which another program copies (A1, A3) */
  readonly #others = new Set<string>();

  constructor(plan: FilePlan) {
    this.#plan = plan;
  }

  /**
   * Copies a file or tree of this host to a path of another host. Returns false if the copy program must do it instead (A1, A3). Throws FarError, or the error
   * of this host's file system.
   */
  put(host: string, source: string, path: string, name: string): Promise<boolean> {
    return this.#attempt(host, (session) => session.put(source, path, name));
  }

  /**
   * Copies files of another host to the path `local` of this host. path: a file of the other host, or a pattern for several. onPlace: called with the path of
   * each file before it is written. Returns and throws as put().
   */
  get(host: string, path: string, local: string, onPlace: (target: string) => void): Promise<boolean> {
    return this.#attempt(host, (session) => session.get(path, local, onPlace));
  }

  close(): void {
    for (const session of this.#sessions.values()) session.close();
    this.#sessions.clear();
  }

  async #attempt(host: string, work: (session: FarSession) => Promise<void>): Promise<boolean> {
    const { far } = this.#plan;
    if (far === undefined) return false;
    const begin_ms = performance.now();
    for (let pause_ms = RETRY_MS_FIRST; ; pause_ms = Math.min(2 * pause_ms, RETRY_MS_MAX)) {
      try {
        const session = await this.#session(host, far);
        if (session === null) return false;
        await work(session);
        return true;
      } catch (error) {
        this.#sessions.get(host)?.close();
        this.#sessions.delete(host);
        const waited_ms = performance.now() - begin_ms;
        if (!(error instanceof FarError) || !error.again || waited_ms + pause_ms > 1000 * far.patience_s) throw error;
        // Many jobs may wait for the same host: the random part of the pause keeps them from trying all at once.
        await sleep(pause_ms * (1 + Math.random()));
      } finally {
        actAs(null);
      }
    }
  }

  async #session(host: string, far: NonNullable<FilePlan["far"]>): Promise<FarSession | null> {
    const known = this.#sessions.get(host);
    if (known !== undefined) return known;
    if (this.#others.has(host)) return null;
    actAs(null);
    const credentials = readCredentials(far.home);
    const place = credentials === null ? null : await placeOf(host, far);
    if (credentials === null || place === null || !place.known) {
      this.#others.add(host);
      return null;
    }
    const is_servers = place.address === null && place.port !== null;
    const at = {
      host: place.address ?? (is_servers ? far.server_host : host),
      port: place.port ?? far.port,
      name: is_servers ? null : host,
      server: far.server,
      revoked: revokedSerials(far.home),
    };
    const { job, run_count, owner } = this.#plan;
    try {
      const session = await FarSession.open(at, credentials, { job, run_count, owner });
      this.#sessions.set(host, session);
      return session;
    } catch (error) {
      if (place.port !== null || !(error instanceof FarError)) throw error;
      if (existsSync(this.#plan.scp[0] ?? "")) {
        this.#others.add(host);
        return null;
      }
      throw new FarError(`${messageOf(error)} (the server does not know where ${host} takes files)`, false);
    }
  }
}

async function placeOf(host: string, { home, server, servers, own }: NonNullable<FilePlan["far"]>): Promise<FilesPlace> {
  try {
    return await placeOfFiles({ home, places: servers, server, own }, host);
  } catch (error) {
    throw new FarError(messageOf(error), true);
  }
}
