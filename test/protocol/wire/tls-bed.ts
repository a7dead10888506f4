// Common code of tests of links over TLS: authorities, hosts, and a server on a free port of the loopback interface.

import { randomInt } from "node:crypto";
import { createServer } from "node:net";
import type { Credentials } from "#identity/files/credentials.ts";
import type { Role } from "#identity/ledger.ts";
import type { HostIdentity } from "#identity/peer.ts";
import { type Authority, makeAuthority, signCertificate } from "#identity/x509/authority.ts";
import { makeRequest, newKey, readRequest } from "#identity/x509/request.ts";
import { ALPN } from "#protocol/wire/alpn.ts";
import type { ServerLink } from "#protocol/wire/ipc-transport.ts";
import { connectTls } from "#protocol/wire/tls-dialer.ts";
import { listenTls, type TlsLinkServer, type TlsListenOptions } from "#protocol/wire/tls-listener.ts";

export const now_s = (): number => Math.floor(Date.now() / 1000);
let serials = 0;
const serial = (): string => `40${(++serials).toString(16).padStart(30, "0")}`;

export const authority = (name = "Partita CA"): Authority => makeAuthority(name, newKey(), serial(), now_s());

/** life_s: until when the certificate is valid, from now; negative: it has expired. starts_s: from when. user: with the role `user`. */
export function member(of: Authority, host: string, role: Role = "host", life_s = 1000, starts_s = -2000, user?: string): Credentials {
  const key = newKey();
  const read = readRequest(makeRequest(host, key));
  if (!read.ok) throw new Error(read.fault);
  const certificate = signCertificate(of, {
    ...read.request,
    role,
    user: user ?? null,
    serial: serial(),
    from_s: now_s() + starts_s,
    until_s: now_s() + life_s,
  });
  return { key, certificate, authority: of.certificate };
}

/** Ports below those that Linux gives to outgoing connections and to listeners without a port of their own (ip_local_port_range begins at 32768). */
const OWN_PORTS = { from: 16_000, below: 32_000 };

/**
 * A port of the loopback address on which nothing listens. A port that the system chose could be given to another process
 * between its release and its use here; these ports are given to nobody, and two tests rarely draw the same one.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(OWN_PORTS.from, OWN_PORTS.below);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}

export type TlsWorld = {
  readonly port: number;
  readonly server: TlsLinkServer;
  readonly links: Set<ServerLink>;
  readonly problems: string[];
  /** frames of links, as `host type data` */
  readonly frames: string[];
  /** hosts that the server refuses */
  readonly refused: Set<string>;
  readonly questions: { readonly type: string; readonly host: string | null }[];
  /** clients to close at the end */
  readonly closing: (() => void)[];
};

/** A server `head` of that authority: it welcomes a hello, repeats what it is told, and answers questions. */
export async function inTlsWorld(
  of: Authority,
  work: (world: TlsWorld) => Promise<void>,
  options: Partial<TlsListenOptions> = {},
): Promise<void> {
  const port = await freePort();
  const closing: (() => void)[] = [];
  const seen = { links: new Set<ServerLink>(), problems: [] as string[], frames: [] as string[], refused: new Set<string>() };
  const questions: { readonly type: string; readonly host: string | null }[] = [];
  const server = await listenTls({
    port,
    address: "127.0.0.1",
    types: ["hello", "tell", "request"],
    protocol: ALPN.link,
    credentials: member(of, "head", "server"),
    fault: ({ host }: HostIdentity) => (seen.refused.has(host) ? `${host} was revoked` : null),
    questions: {
      types: ["join", "renew"],
      async answer({ type, data }, identity) {
        questions.push({ type, host: identity?.host ?? null });
        return { type: "joined", data };
      },
    },
    onLink: (link) => seen.links.add(link),
    onClose: (link) => seen.links.delete(link),
    onProblem: (text) => seen.problems.push(text),
    onFrame(link, type, data) {
      seen.frames.push(`${link.peer.host?.host} ${type} ${JSON.stringify(data)}`);
      if (type === "hello") link.welcome();
      link.send("told", data);
    },
    ...options,
  });
  try {
    await work({ port, server, ...seen, questions, closing });
  } finally {
    for (const close of closing) close();
    await server.close();
  }
}

export type Dialled = {
  readonly heard: string[];
  readonly faults: string[];
  readonly link: ReturnType<typeof connectTls>;
  opened: number;
  closed: number;
};

/** A daemon of a host, dialling. It says hello at every connection. */
export function dial(
  world: Pick<TlsWorld, "port" | "closing">,
  credentials: () => Credentials,
  options: { readonly server?: string; readonly dial_ms_max?: number; readonly revoked?: ReadonlySet<string> } = {},
): Dialled {
  const state = { heard: [] as string[], faults: [] as string[], opened: 0, closed: 0 };
  const link = connectTls(
    {
      types: ["told"],
      retry_ms: 100,
      limits: { refused_retry_ms: 100, ...(options.dial_ms_max === undefined ? {} : { dial_ms_max: options.dial_ms_max }) },
      onOpen(open) {
        state.opened++;
        open.send("hello", { n: state.opened });
      },
      onFrame: (type, data) => state.heard.push(`${type} ${JSON.stringify(data)}`),
      onClose: () => void state.closed++,
      onRefused: (error) => state.faults.push(error.message),
    },
    { host: "127.0.0.1", port: world.port, server: options.server ?? "head", credentials, revoked: () => options.revoked ?? new Set() },
  );
  world.closing.push(() => link.close());
  return Object.assign(state, { link });
}
