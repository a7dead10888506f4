// Makes the requests to OpenStack: bodies of requests, the choice of a flavour, and the user data from which a server boots its runner. Pure.
//
// O1. The user data has the token of one runner, and nothing else that is secret.

import type { RunnerOrder, RunnerRequest } from "../contract/backend.ts";
import { BackendError } from "../contract/fault.ts";
import { runnerScript } from "../contract/script.ts";
import type { Flavor, Quota } from "./answer.ts";
import type { Credentials, OpenStackOptions } from "./options.ts";

/** The version of nova's interface that is asked for: networks `none` and `auto` exist since 2.37, descriptions of flavours in servers since 2.47. */
export const NOVA_VERSION = "2.60";

export const tokenBody = ({ identity, scope }: Credentials): object => ({ auth: { identity, ...(scope === null ? {} : { scope }) } });

/** Keys of the metadata of a server. */
export const META = { TAG: "partita_tag", INDEX: "partita_index" } as const;

/** Returns the smallest flavour that satisfies the request. Throws `impossible` with a text that names the flavours that exist. */
export function flavorFor(request: RunnerRequest, flavors: readonly Flavor[], options: OpenStackOptions): Flavor {
  const wanted = request.options["flavor"] ?? options.options["flavor"];
  const ram_mb = Math.ceil((request.mem_kb ?? 0) / 1024);
  const disk_gb = Math.ceil((request.tmp_kb ?? 0) / 1024 / 1024);
  const fits = (each: Flavor): boolean => each.vcpus >= request.ncpus && each.ram_mb >= ram_mb && each.disk_gb >= disk_gb;
  const named = flavors.filter((each) =>
    wanted === undefined ? options.flavors.test(each.name) : each.name === wanted || each.id === wanted,
  );
  const [best] = named
    .filter(fits)
    .sort((a, b) => a.vcpus - b.vcpus || a.ram_mb - b.ram_mb || a.disk_gb - b.disk_gb || (a.name < b.name ? -1 : 1));
  if (best !== undefined) return best;
  const there = named.slice(0, 8).map((each) => `${each.name} (${each.vcpus} cpus, ${each.ram_mb} MB, ${each.disk_gb} GB)`);
  const text = `no flavour has ${request.ncpus} cpus, ${ram_mb} MB of memory and ${disk_gb} GB of disk; there are: ${there.join(", ") || "none"}`;
  throw new BackendError({ kind: "impossible", text });
}

/** Returns how many servers of a flavour fit into the quota. */
export function roomFor({ vcpus, ram_mb }: Flavor, quota: Quota): number {
  const room = ({ max, used }: { readonly max: number; readonly used: number }, each: number): number =>
    max < 0 || each === 0 ? Number.POSITIVE_INFINITY : Math.floor((max - used) / each);
  return Math.max(0, Math.min(room(quota.instances, 1), room(quota.cores, vcpus), room(quota.ram_mb, ram_mb)));
}

/** Checks that OpenStack can give what the request asks for beside cpus, memory and disk. */
export function checkRequest({ resources }: RunnerRequest): void {
  const [name] = Object.keys(resources);
  if (name !== undefined)
    throw new BackendError({
      kind: "impossible",
      text: `resource ${name}: servers of OpenStack are chosen by cpus, memory and disk only; consider: backend_opts="--flavor NAME"`,
    });
}

export type ServerParts = {
  readonly order: RunnerOrder;
  readonly index: number;
  readonly flavor: Flavor;
  readonly image: string;
  /** user mode: the user of the complex */
  readonly user: string | null;
};

/** Returns the body that creates a server. */
export function serverBody({ order, index, flavor, image, user }: ServerParts, options: OpenStackOptions): object {
  const { networks, key_name, security_groups } = options;
  return {
    server: {
      name: `${options.name_prefix}${order.tag}-${index}`,
      imageRef: image,
      flavorRef: flavor.id,
      networks: networks === null ? "auto" : networks.length === 1 && networks[0] === "none" ? "none" : networks.map((uuid) => ({ uuid })),
      metadata: { [META.TAG]: order.tag, [META.INDEX]: String(index) },
      user_data: Buffer.from(userData(order, index, user)).toString("base64"),
      ...(key_name === null ? {} : { key_name }),
      ...(security_groups.length === 0 ? {} : { security_groups: security_groups.map((name) => ({ name })) }),
    },
  };
}

/** Where a server keeps the token of its runner. */
const TOKEN_DIR = "/run/partita-runner";

/**
 * Returns the script that cloud-init runs as root when the server boots. It makes the user of the runner if the image does not have him, writes the token into a file
 * of this user, runs the runner as this user, and shuts the server down when the runner has left: list() then finds the server and deletes it.
 */
export function userData(order: RunnerOrder, index: number, user: string | null): string {
  const name = order.owner?.name ?? user ?? "";
  if (!/^[A-Za-z_][A-Za-z0-9_.-]{0,31}$/.test(name) || name === "root")
    throw new BackendError({ kind: "configuration", text: `no server is started for the user ${JSON.stringify(name)}` });
  const token = order.tokens[index] ?? "";
  if (!/^[A-Za-z0-9_.+/=:-]{1,512}$/.test(token)) throw new RangeError("a token has characters that cannot be in user data");
  const uid = order.owner === null ? "" : `-u ${order.owner.uid} `;
  const script = runnerScript({
    order,
    token_dir: TOKEN_DIR,
    index: String(index),
  });
  return [
    "#!/bin/sh",
    `id ${name} >/dev/null 2>&1 || useradd -m ${uid}${name}`,
    `mkdir -p ${TOKEN_DIR}`,
    `chmod 711 ${TOKEN_DIR}`,
    "umask 077",
    `printf %s '${token}' > ${TOKEN_DIR}/${index}`,
    `chown ${name} ${TOKEN_DIR}/${index}`,
    `cat > ${TOKEN_DIR}/run.${index} <<'PARTITA_END'`,
    `${script}PARTITA_END`,
    `chmod 755 ${TOKEN_DIR}/run.${index}`,
    "cd /",
    `setpriv --reuid=${name} --regid="$(id -g ${name})" --init-groups --reset-env ${TOKEN_DIR}/run.${index}`,
    `rm -f ${TOKEN_DIR}/${index} ${TOKEN_DIR}/run.${index}`,
    '[ -n "$PARTITA_NO_SHUTDOWN" ] || shutdown -h now',
    "",
  ].join("\n");
}
