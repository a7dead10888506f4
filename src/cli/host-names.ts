// Whose host a name is, by address. Loaded only when a name is none of those the complex goes by.

import { lookup } from "node:dns/promises";
import { networkInterfaces } from "node:os";

/** ours: an address of this machine or of the server. */
export async function whoseAddress(name: string, server: string): Promise<"ours" | "foreign" | "nobody"> {
  const wanted = await addressesOf(name);
  if (wanted.length === 0) return "nobody";
  const own = new Set([
    ...Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .map((each) => each.address),
    ...(await addressesOf(server)),
  ]);
  return wanted.some((address) => own.has(address) || address.startsWith("127.")) ? "ours" : "foreign";
}

async function addressesOf(name: string): Promise<readonly string[]> {
  try {
    return (await lookup(name, { all: true })).map((each) => each.address);
  } catch {
    return [];
  }
}
