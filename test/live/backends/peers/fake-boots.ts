// Boots the servers of nova's fake driver: such servers become ACTIVE but run nothing. This file runs their user data as processes of this machine, shuts a
// server down in nova when its script has ended, and ends the script of a server that was deleted.

import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readCredentials } from "#backends/openstack/options.ts";
import { tokenBody } from "#backends/openstack/request.ts";
import { STATE } from "./peer-bed.ts";

export const OPENRC = join(STATE, "openstack", "openrc");
const NOVA_VERSION = "2.60";
const PAUSE_MS = 500;

export type Nova = {
  /** sends a request to nova, as an administrator would. body: as JSON */
  ask(method: string, path: string, body?: object): Promise<{ readonly status: number; readonly text: string }>;
};

export async function openNova(): Promise<Nova> {
  const given = readCredentials(readFileSync(OPENRC, "utf8"), null);
  const json = { "content-type": "application/json" };
  const login = await fetch(`${given.url}/auth/tokens`, { method: "POST", headers: json, body: JSON.stringify(tokenBody(given)) });
  const token = login.headers.get("x-subject-token") ?? "";
  const { token: parts } = JSON.parse(await login.text());
  const compute: string = parts.catalog.find(({ type }: { type: string }) => type === "compute").endpoints[0].url;
  const headers = { ...json, "x-auth-token": token, "x-openstack-nova-api-version": NOVA_VERSION };
  return {
    async ask(method, path, body) {
      const answer = await fetch(`${compute}${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
      return { status: answer.status, text: await answer.text() };
    },
  };
}

type Server = { readonly id: string; readonly name: string; readonly status: string; readonly "OS-EXT-SRV-ATTR:user_data": string | null };

export class FakeBoots {
  readonly #nova: Nova;
  readonly #booted = new Map<string, ChildProcess>();
  readonly #down = new Set<string>();
  #stopped = false;
  readonly #looping: Promise<void>;
  /** servers that were booted so far */
  count = 0;

  constructor(nova: Nova) {
    this.#nova = nova;
    this.#looping = this.#loop();
  }

  async close(): Promise<void> {
    this.#stopped = true;
    await this.#looping;
    for (const child of this.#booted.values()) endGroup(child);
  }

  /** Ids of the servers with user data that nova has. */
  async servers(): Promise<readonly Server[]> {
    const { status, text } = await this.#nova.ask("GET", "/servers/detail");
    if (status !== 200) throw new Error(`nova answers ${status}`);
    const { servers } = JSON.parse(text) as { readonly servers: readonly Server[] };
    return servers.filter((each) => each["OS-EXT-SRV-ATTR:user_data"] !== null);
  }

  async #loop(): Promise<void> {
    for (; !this.#stopped; await sleep(PAUSE_MS)) {
      // While nova is stopped, nothing can be booted.
      const servers = await this.servers().catch(() => null);
      if (servers === null) continue;
      for (const [id, child] of this.#booted) if (!servers.some((each) => each.id === id)) endGroup(child);
      for (const server of servers) if (server.status === "ACTIVE") await this.#look(server).catch(() => undefined);
    }
  }

  async #look({ id, ...server }: Server): Promise<void> {
    const child = this.#booted.get(id);
    if (child === undefined) {
      this.count++;
      this.#booted.set(id, boot(id, Buffer.from(server["OS-EXT-SRV-ATTR:user_data"] ?? "", "base64").toString()));
    } else if (child.exitCode !== null && !this.#down.has(id)) {
      const { status } = await this.#nova.ask("POST", `/servers/${id}/action`, { "os-stop": null });
      if (status < 300) this.#down.add(id);
    }
  }
}

/** Runs user data. The servers are one machine here, so each gets a directory of its own for its token. */
function boot(id: string, script: string): ChildProcess {
  const child = spawn("/bin/sh", ["-s"], {
    detached: true,
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", PARTITA_NO_SHUTDOWN: "1" },
    stdio: ["pipe", "ignore", "inherit"],
  });
  child.stdin?.end(script.replaceAll("/run/partita-runner", `/run/partita-runner-${id}`));
  child.once("exit", () => spawn("rm", ["-rf", `/run/partita-runner-${id}`], { stdio: "ignore" }));
  return child;
}

function endGroup({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has just ended.
  }
}
