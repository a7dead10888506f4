// A host that has joined a complex, as `partita start`, `status` and `doctor` see it: its server is on another host.

import type { AskingHost } from "#protocol/host-questions.ts";
import type { HostSight } from "#protocol/join-link.ts";
import { messageOf } from "#support/caught.ts";
import type { Conf } from "#support/conf.ts";
import { localStamper } from "#support/local-time.ts";

/**
 * Whether the server answers this host and accepts its certificate. text: a sentence for the administrator; clock_s: by how many
 * seconds this host's clock is ahead of the server's; seen: what the server knows of this host; undefined: the server does not say.
 */
export type ServerSight =
  | {
      readonly ok: true;
      readonly text: string;
      readonly clock_s: number;
      readonly host: string;
      readonly until_s: number;
      readonly seen: HostSight | undefined;
    }
  | { readonly ok: false; readonly text: string };

type MemberConf = Pick<Conf, "home" | "server_host" | "servers" | "own_server" | "port" | "mode">;

/** Returns what the functions need that ask the server about the certificates of this host. */
export const askingHost = ({ home, servers, own_server, mode }: MemberConf): AskingHost => ({
  home,
  places: servers,
  server: own_server,
  own: mode === "user",
});

export async function lookAtServer(conf: MemberConf): Promise<ServerSight> {
  try {
    const { checkCertificate } = await import("#protocol/host-questions.ts");
    const { host, until_s, now_s, sight } = await checkCertificate(askingHost(conf));
    const until = localStamper().stamp(until_s * 1000);
    const text = `the server ${conf.own_server} answers, and knows this host as ${host}; certificate until ${until}`;
    return { ok: true, text, clock_s: Math.round(Date.now() / 1000 - now_s), host, until_s, seen: sight };
  } catch (error) {
    return { ok: false, text: withHint(messageOf(error), conf) };
  }
}

/** Adds to a text what the administrator can check if the network has a fault. */
function withHint(text: string, { server_host, port }: Pick<Conf, "server_host" | "port">): string {
  if (/ENOTFOUND|EAI_AGAIN/.test(text))
    return `${text}: the name ${server_host} has no address here (PBS_SERVER_HOST_NAME, /etc/hosts, DNS)`;
  if (/ECONNREFUSED/.test(text)) return `${text}: does the server run, and does it listen on this port (partita doctor there)?`;
  if (/does not answer|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT/.test(text)) return `${text}: does a firewall close TCP port ${port.server}?`;
  return text;
}
