// Finds hosts by name and by address.

import { lookup, lookupService } from "node:dns";
import { isIP } from "node:net";
import { hostname, networkInterfaces } from "node:os";

/**
 * Returns the port ServerPorts.resolve. node_name: the name of the mom on this host. It is the answer for an address of this
 * host, unless the address has a name of its own, for example in /etc/hosts.
 */
export function hostLookup(node_name: string): (host: string, done: (name: string | null) => void) => void {
  return (host, done) => {
    if (isIP(host) === 0) {
      lookup(host, (error) => done(error === null ? host : null));
      return;
    }
    // Port 0 has no service name; only the name of the host is used.
    lookupService(host, 0, (error, found) => {
      const name = error === null && isIP(found) === 0 && !isLoopbackName(found) ? found : null;
      const is_here = name === null ? isOwnAddress(host) : isOwnName(name);
      done(is_here ? node_name : name);
    });
  };
}

/**
 * Whether an interface of this host has the address. Of the loopback addresses, these are only 127.0.0.1 and ::1: with an
 * address such as 127.0.0.2, a complex on one machine names a further mom.
 */
const isOwnAddress = (address: string): boolean =>
  Object.values(networkInterfaces()).some((addresses) => addresses?.some((own) => own.address === address) === true);

/** Whether a name that was found for an address means this host. Names of this machine that belong to other moms do not count. */
function isOwnName(name: string): boolean {
  const own = hostname();
  return name === own || name.startsWith(`${own}.`) || own.startsWith(`${name}.`);
}

/** Whether a name is one of the loopback interface. The resolver may give it for every address of 127.0.0.0/8. */
const isLoopbackName = (name: string): boolean => LOOPBACK_NAMES.has(name.split(".")[0] ?? name);
const LOOPBACK_NAMES = new Set(["localhost", "ip6-localhost", "ip6-loopback", "localhost6"]);
