// Common code of tests of links: a server in a separate directory that answers a few requests, and waiting for states.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createConnection, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodePartFrame } from "#protocol/wire/frame.ts";
import { type LinkServer, type ListenOptions, listenLinks, type ServerLink } from "#protocol/wire/ipc-transport.ts";
import { serverSocketPath } from "#protocol/wire/socket-path.ts";

export type World = {
  readonly dir: string;
  readonly home: string;
  readonly path: string;
  readonly problems: string[];
  readonly links: Set<ServerLink>;
};

/** A server that answers locate-job with the peer's uid, status with many parts, and never answers wait-job. */
export async function serve(world: World, options: Partial<ListenOptions> = {}): Promise<LinkServer> {
  return listenLinks({
    path: world.path,
    types: ["request", "sched-hello", "tell"],
    everyone: false,
    onLink: (link) => world.links.add(link),
    onClose: (link) => world.links.delete(link),
    onProblem: (text) => world.problems.push(text),
    onFrame(link, type, data) {
      if (type !== "request") return;
      const { id, kind } = data as { readonly id: number; readonly kind: string };
      if (kind === "wait-job") return;
      if (kind === "status") void link.sendFrames(parts(id, 80)).catch(() => undefined);
      link.reply({ id, ok: true, value: { uid: link.peer.uid, pid: link.peer.pid } });
    },
    ...options,
  });
}

export const ITEM = JSON.stringify({ id: "1.svr", attrs: { text: "x".repeat(1000) } });
function* parts(id: number, frames: number): Generator<string> {
  for (let at = 0; at < frames; at++) yield encodePartFrame(id, Array<string>(50).fill(ITEM));
}

export async function inWorld(work: (world: World) => Promise<void>, sub = ""): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "partita-link-"));
  const home = join(dir, sub);
  mkdirSync(home, { recursive: true });
  try {
    await work({ dir, home, path: serverSocketPath(home), problems: [], links: new Set() });
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** Waits for a state, however slow the machine. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  const limit_ms = performance.now() + 60_000;
  while (!holds()) {
    if (performance.now() > limit_ms) throw new Error(`not within a minute: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export const open = (path: string): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = createConnection(path, () => resolve(socket));
    socket.on("error", reject);
  });
/** Resolves when the peer has ended the connection. */
export const ended = (socket: Socket): Promise<void> =>
  new Promise((resolve) => (socket.destroyed ? resolve() : socket.resume().on("close", () => resolve())));
export const locate = { kind: "locate-job", job: "1" } as const;
