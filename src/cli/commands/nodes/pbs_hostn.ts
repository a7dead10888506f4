// pbs_hostn: shows how this machine resolves a host name (docs/reference/commands.md 6).

import type { LookupAddress } from "node:dns";
import { lookup, lookupService } from "node:dns/promises";
import type { Command, CommandIo } from "../../command.ts";
import { asCommand } from "../../complex.ts";
import { optionFault, scanOptions } from "../../getopt.ts";

const USAGE = `Usage: pbs_hostn [-v] hostname
	 -v turns on verbose output
       pbs_hostn --version
`;

export const run: Command = asCommand("pbs_hostn", USAGE, pbsHostn);

/** Lookups in the name service. */
export type NameService = {
  readonly addressesOf: (name: string) => Promise<readonly string[]>;
  /** the name of an address; null: it has none */
  readonly nameOf: (address: string) => Promise<string | null>;
};

const SYSTEM: NameService = {
  addressesOf: async (name) => (await lookup(name, { all: true, family: 4 })).map((each: LookupAddress) => each.address),
  nameOf: async (address) => {
    try {
      return (await lookupService(address, 0)).hostname;
    } catch {
      return null;
    }
  },
};

export async function pbsHostn(io: CommandIo, _complex: unknown, names: NameService = SYSTEM): Promise<number> {
  const scan = scanOptions(io.argv, "v");
  const faults = scan.events.flatMap((event) => optionFault("pbs_hostn", event) ?? []);
  const [host] = scan.operands;
  if (faults.length > 0 || host === undefined || scan.operands.length > 1) {
    io.err(faults.map((fault) => `${fault}\n`).join("") + USAGE);
    return 1;
  }
  let addresses: readonly string[];
  try {
    addresses = await names.addressesOf(host);
  } catch {
    io.err(`no name entry found for ${host}\n ** h_errno is 2 Try Again\n`);
    return 0;
  }
  if (scan.events.length === 0) {
    io.out(`${host}\n`);
    return 0;
  }
  let text = `primary name: ${host} (from gethostbyname())\naliases:            -none-\n     address length:  4 bytes\n`;
  for (const address of addresses) text += addressLine(address, nameFor(host, await names.nameOf(address)));
  io.out(text);
  return 0;
}

/** Returns the name to show for an address: its own name. If it has none, or is a loopback address (which has many names), the name that the user gave. */
const nameFor = (host: string, name: string | null): string => (name === null || name === "localhost" ? host : name);

function addressLine(address: string, name: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
  // PBS prints the four bytes of the address as a little-endian number.
  const number = a + b * 256 + c * 65_536 + d * 16_777_216;
  return `     address:           ${address.padEnd(12)} (${number} dec)  name:  ${name}\n`;
}
