// A program of a hostile host: `node hostile.ts HOST PORT ATTEMPTS`. ATTEMPTS: JSON of Attempt[]. Makes the attempts one after the other, and prints an Outcome of each as
// a JSON line. With `node hostile.ts HOST PORT idle N` it opens N connections that say nothing, as the user HOSTILE_UID, and keeps those that are not closed; it prints how many were tried and how many are open.

import { spawnSync } from "node:child_process";
import { connect as connectPlain, type Socket } from "node:net";
import { connect } from "node:tls";
import { claimText } from "#protocol/proof/claim.ts";
import { bindingOf } from "#protocol/proof/exchange.ts";
import { encodeFrame } from "#protocol/wire/frame.ts";

export type Attempt = {
  readonly name: string;
  /** the protocol that is asked for (ALPN); null: no TLS at all */
  readonly alpn: string | null;
  /** certificate and key as PEM; null: none is shown */
  readonly pem: string | null;
  /** a proof by a munge credential of this user. age_s: how old its claim is; binding: of another connection; payload: in place of a claim */
  readonly munge?: {
    readonly socket: string;
    readonly user: string;
    readonly age_s?: number;
    readonly binding?: string;
    readonly payload?: string;
  };
  /** texts that are sent at once */
  readonly texts?: readonly string[];
  /** then so many characters of a frame that never ends, as fast as possible */
  readonly endless_chars?: number;
  /** then one character at this interval, for ever */
  readonly drip_ms?: number;
  /** the attempt is over when the other end has closed, or after this time */
  readonly wait_ms: number;
};

export type Outcome = {
  readonly name: string;
  /** what the other end has sent */
  readonly heard: string;
  readonly closed: boolean;
  readonly ms: number;
  /** identifies the connection; "": there was no TLS */
  readonly binding: string;
};

const HEARD_MAX = 20_000;
const [, , host = "", port = "0", what = "[]", count = "0"] = process.argv;

function credentialOf({ socket, user, age_s = 0, binding, payload }: NonNullable<Attempt["munge"]>, own: string): string {
  const claim = payload ?? claimText({ server: host, binding: binding ?? own, made_s: Math.floor(Date.now() / 1000) - age_s });
  const words = [`--reuid=${user}`, `--regid=${user}`, "--init-groups", "munge", "-S", socket, "-s", claim];
  return spawnSync("setpriv", words, { encoding: "utf8", cwd: "/" }).stdout.trim();
}

function attempt(each: Attempt): Promise<Outcome> {
  return new Promise((resolve) => {
    const begin_ms = performance.now();
    let heard = "";
    let binding = "";
    let drip: NodeJS.Timeout | undefined;
    const place = { host, port: Number(port) };
    const shown = each.pem === null ? {} : { cert: each.pem, key: each.pem };
    const tls = each.alpn === null ? null : connect({ ...place, ...shown, rejectUnauthorized: false, ALPNProtocols: [each.alpn] });
    const socket: Socket = tls ?? connectPlain(place);
    const done = (closed: boolean): void => {
      clearTimeout(timer);
      clearInterval(drip);
      socket.destroy();
      resolve({ name: each.name, heard, closed, ms: Math.round(performance.now() - begin_ms), binding });
    };
    const timer = setTimeout(() => done(false), each.wait_ms);
    const more = (): void => {
      for (const text of each.texts ?? []) socket.write(text);
      let left = each.endless_chars ?? 0;
      const pour = (): void => {
        for (; left > 0; left -= 65_536) if (!socket.write("x".repeat(65_536))) return;
      };
      socket.on("drain", pour);
      if (left > 0) pour();
      if (each.drip_ms !== undefined) drip = setInterval(() => socket.write("x"), each.drip_ms);
    };
    socket.on("error", () => undefined);
    socket.once("close", () => done(true));
    socket.on("data", (chunk: Buffer) => {
      const was_proved = heard.includes('"proved"');
      heard = (heard + chunk.toString()).slice(0, HEARD_MAX);
      if (each.munge !== undefined && !was_proved && heard.includes('"proved"')) more();
    });
    socket.once(tls === null ? "connect" : "secureConnect", () => {
      if (tls !== null) binding = bindingOf(tls);
      if (each.munge === undefined) return more();
      socket.write(encodeFrame("prove", { credential: credentialOf(each.munge, binding) }));
    });
  });
}

/** Opens connections until so many were tried, some at a time, and reports for ever. */
function idle(wanted: number): void {
  let tried = 0;
  let open = 0;
  const next = (): void => {
    if (tried >= wanted) return;
    tried++;
    const socket = host.startsWith("/") ? connectPlain(host) : connectPlain({ host, port: Number(port) });
    let is_open = false;
    socket.once("connect", () => {
      is_open = true;
      open++;
      setImmediate(next);
    });
    socket.on("error", () => undefined).resume();
    socket.once("close", () => {
      if (is_open) open--;
      else setTimeout(next, 5);
    });
  };
  for (let at = 0; at < 100; at++) next();
  setInterval(() => process.stdout.write(`${tried} ${open}\n`), 200);
}

// The rights of root are needed for the limit of open files and for the sources of this program only.
const uid = Number(process.env["HOSTILE_UID"] ?? "0");
if (uid !== 0) process.setuid?.(uid);
if (what === "idle") idle(Number(count));
else {
  for (const each of JSON.parse(what) as readonly Attempt[]) process.stdout.write(`${JSON.stringify(await attempt(each))}\n`);
  process.exit(0);
}
