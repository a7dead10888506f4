// exec_host for display. Server and moms use the host name that the mom reports. If an administrator has created a node
// under its IP address, exec_host shows that address, as in PBS.

import { renameHosts } from "#model/request/host-entry.ts";
import type { ServerState } from "./state.ts";

type Hosts = Pick<ServerState, "hosts">;

const ADDRESS = /^(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*)$/;

/** The exec_host to show. Each entry is looked up, so the cost grows with the number of entries. */
export function shownExecHost(state: Hosts, exec_host: string): string {
  return renameHosts(exec_host, (host) => shownHost(state, host));
}

/** The name to show for a host: if its only vnode has an IP address as its name, that address. */
function shownHost({ hosts }: Hosts, host: string): string {
  const vnodes = hosts.get(host);
  if (vnodes?.size !== 1) return host;
  const [only = host] = vnodes;
  return only !== host && ADDRESS.test(only) ? only : host;
}
