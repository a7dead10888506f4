// Whether other hosts can be reached from this one, for `partita doctor`: connections over TCP are opened and closed at once, and names are looked up.

import { lookup } from "node:dns/promises";
import { connect } from "node:net";
import type { OtherMom } from "#protocol/join-link.ts";
import { codeOf } from "#support/caught.ts";

/** why: the reason as a text for the administrator */
export type Unreached = OtherMom & { readonly why: string };
/** A name that means other addresses here than the one from which the host has connected. */
export type OtherAddress = { readonly host: string; readonly address: string; readonly found: readonly string[] };

/** The longest time in which a connection must open, and the number of connections that are opened at the same time. */
const LIMITS = { ms_max: 5000, at_once: 32 } as const;

/** Tries to connect to all places, some at a time. Returns those that cannot be reached. */
export async function unreached(places: readonly OtherMom[]): Promise<Unreached[]> {
  const found: Unreached[] = [];
  const waiting = [...places];
  const next = async (): Promise<void> => {
    for (let place = waiting.shift(); place !== undefined; place = waiting.shift()) {
      const why = await faultOf(place);
      if (why !== null) found.push({ ...place, why });
    }
  };
  await Promise.all(Array.from({ length: LIMITS.at_once }, next));
  return found.sort((a, b) => (a.host < b.host ? -1 : 1));
}

/** Returns why a connection cannot be opened, or null if it can. */
function faultOf({ address, port }: OtherMom): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port });
    const end = (why: string | null): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(why);
    };
    const timer = setTimeout(() => end(`no answer in ${LIMITS.ms_max / 1000} s`), LIMITS.ms_max);
    socket.once("connect", () => end(null));
    socket.once("error", (error) => end(codeOf(error) ?? error.message));
  });
}

/** Returns the hosts whose names resolve on this host, but to other addresses only. A name that does not resolve here is not a fault. */
export async function otherAddresses(places: readonly OtherMom[]): Promise<OtherAddress[]> {
  const looked = await Promise.all(
    places.map(async ({ host, address }) => {
      const found = await lookup(host, { all: true }).catch(() => []);
      return { host, address, found: found.map((each) => each.address) };
    }),
  );
  return looked.filter(({ address, found }) => found.length > 0 && !found.includes(plain(address)));
}

/** Returns an address without the prefix `::ffff:`, which a socket for IPv4 and IPv6 puts before an IPv4 address. */
const plain = (address: string): string => address.replace(/^::ffff:/, "");
