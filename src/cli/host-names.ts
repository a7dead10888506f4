// Finds out whether a host name means our server, by comparing addresses. Loaded only if the name is not one of the
// complex's known names.

import { lookup } from "node:dns/promises";
import { networkInterfaces } from "node:os";

/** Returns `ours` if the name has an address of the server. is_here: the server is on this machine, and so are all addresses of this machine. */
export async function whoseAddress(name: string, server: string, is_here: boolean): Promise<"ours" | "foreign" | "nobody"> {
  const wanted = await addressesOf(name);
  if (wanted.length === 0) return "nobody";
  const own = new Set([
    ...(is_here ? Object.values(networkInterfaces()) : []).flatMap((list) => list ?? []).map((each) => each.address),
    ...(await addressesOf(server)),
  ]);
  return wanted.some((address) => own.has(address) || (is_here && address.startsWith("127."))) ? "ours" : "foreign";
}

async function addressesOf(name: string): Promise<readonly string[]> {
  try {
    return (await lookup(name, { all: true })).map((each) => each.address);
  } catch {
    return [];
  }
}
