// exec_host as users see it. Server and moms use the host name that the mom reports. A node that an administrator created by its IP address is
// shown under that address, as in PBS.

import { renameHosts } from "#model/request/host-entry.ts";
import type { ServerState } from "./state.ts";

type Hosts = Pick<ServerState, "hosts">;

const ADDRESS = /^(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*)$/;

/** The cost is proportional to the number of entries, because each entry is looked up. */
export function shownExecHost(state: Hosts, exec_host: string): string {
  return renameHosts(exec_host, (host) => shownHost(state, host));
}

/** The host's only vnode, if its name is an address. */
function shownHost({ hosts }: Hosts, host: string): string {
  const vnodes = hosts.get(host);
  if (vnodes?.size !== 1) return host;
  const [only = host] = vnodes;
  return only !== host && ADDRESS.test(only) ? only : host;
}
