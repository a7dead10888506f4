// Reads what OpenStack answers: tokens with their catalogue, flavours, images, limits, servers and errors. Pure.

import { z } from "zod";
import type { RunnerSighting } from "../contract/backend.ts";
import { BackendError, cleanText } from "../contract/fault.ts";
import { isTagOf } from "../contract/tag.ts";
import { META } from "./request.ts";

/** Reads JSON that must have this shape. what: names the text in an error. */
function read<T>(shape: z.ZodType<T>, text: string, what: string): T {
  try {
    return shape.parse(JSON.parse(text));
  } catch (error) {
    throw new BackendError(
      { kind: "transient", text: `the answer with ${what} cannot be read: ${cleanText(text.slice(0, 200))}` },
      { cause: error },
    );
  }
}

const catalog = z.object({
  token: z.object({
    expires_at: z.string(),
    catalog: z.array(
      z.object({
        type: z.string(),
        endpoints: z.array(z.object({ interface: z.string(), region: z.string().nullish(), url: z.string() })),
      }),
    ),
  }),
});

export type Catalog = { readonly expires_at: string; readonly compute: string; readonly image: string | null };

/** Returns the addresses of the services in the catalogue of a token. region: null: the first of each. */
export function readCatalog(text: string, region: string | null): Catalog {
  const { token } = read(catalog, text, "a token");
  const address = (type: string): string | null => {
    const endpoints = token.catalog.filter((each) => each.type === type).flatMap((each) => each.endpoints);
    return (
      endpoints.find((each) => each.interface === "public" && (region === null || each.region === region))?.url.replace(/\/+$/, "") ?? null
    );
  };
  const compute = address("compute");
  if (compute === null)
    throw new BackendError({
      kind: "configuration",
      text: `the catalogue has no compute service${region === null ? "" : ` in region ${region}`}`,
    });
  return { expires_at: token.expires_at, compute, image: address("image") };
}

export type Flavor = {
  readonly id: string;
  readonly name: string;
  readonly vcpus: number;
  readonly ram_mb: number;
  readonly disk_gb: number;
};

const flavors = z.object({
  flavors: z.array(
    z.object({
      id: z.string(),
      name: z.string(),
      vcpus: z.number(),
      ram: z.number(),
      disk: z.number(),
      "OS-FLV-EXT-DATA:ephemeral": z.number().optional(),
    }),
  ),
});

/** Returns the flavours of GET /flavors/detail. */
export function readFlavors(text: string): readonly Flavor[] {
  return read(flavors, text, "flavours").flavors.map((each) => ({
    id: each.id,
    name: each.name,
    vcpus: each.vcpus,
    ram_mb: each.ram,
    disk_gb: each.disk + (each["OS-FLV-EXT-DATA:ephemeral"] ?? 0),
  }));
}

const images = z.object({ images: z.array(z.object({ id: z.string(), name: z.string().nullish(), status: z.string() })) });

/** Returns the id of an image that is given by id or name; null: the first active one. */
export function readImage(text: string, wanted: string | null): string {
  const active = read(images, text, "images").images.filter(({ status }) => status === "active");
  const found = wanted === null ? active[0] : (active.find(({ id }) => id === wanted) ?? active.find(({ name }) => name === wanted));
  if (found !== undefined) return found.id;
  throw new BackendError({
    kind: "configuration",
    text: wanted === null ? "there is no active image" : `there is no active image ${wanted}`,
  });
}

type Used = { readonly max: number; readonly used: number };
export type Quota = { readonly instances: Used; readonly cores: Used; readonly ram_mb: Used };

const limits = z.object({
  limits: z.object({
    absolute: z.object({
      maxTotalInstances: z.number(),
      totalInstancesUsed: z.number(),
      maxTotalCores: z.number(),
      totalCoresUsed: z.number(),
      maxTotalRAMSize: z.number(),
      totalRAMUsed: z.number(),
    }),
  }),
});

export function readQuota(text: string): Quota {
  const { absolute: all } = read(limits, text, "limits").limits;
  return {
    instances: { max: all.maxTotalInstances, used: all.totalInstancesUsed },
    cores: { max: all.maxTotalCores, used: all.totalCoresUsed },
    ram_mb: { max: all.maxTotalRAMSize, used: all.totalRAMUsed },
  };
}

const server = z.object({
  id: z.string(),
  status: z.string(),
  created: z.string().optional(),
  metadata: z.record(z.string(), z.string()).optional(),
  fault: z.object({ message: z.string() }).partial().optional(),
  "OS-EXT-STS:task_state": z.string().nullish(),
  flavor: z.object({ vcpus: z.number(), ram: z.number() }).partial().optional(),
});
const servers = z.object({ servers: z.array(server), servers_links: z.array(z.object({ rel: z.string() })).optional() });

/**
 * A server of ours. created: shows which of two servers for one runner is older. over: it has ended and is to be deleted. vcpus, ram_mb: what it takes of the
 * quota. isSilent: it has failed, and the list does not say why
 */
export type Server = {
  readonly sighting: RunnerSighting;
  readonly created: string;
  readonly over: boolean;
  readonly vcpus: number;
  readonly ram_mb: number;
  readonly isSilent: boolean;
};

/** Returns the servers of a page of GET /servers/detail, and the marker of the next page (null: it was the last). */
export function readServers(
  text: string,
  of: { readonly complex: string; readonly backend: string },
): { readonly servers: readonly Server[]; readonly next: string | null } {
  const page = read(servers, text, "servers");
  const found = page.servers.flatMap((each) => {
    const tag = each.metadata?.[META.TAG] ?? "";
    const index = each.metadata?.[META.INDEX] ?? "";
    return isTagOf(tag, of) && /^[0-9]{1,5}$/.test(index) && /^[A-Za-z0-9-]{1,64}$/.test(each.id)
      ? [serverOf(each, tag, Number(index))]
      : [];
  });
  const more = page.servers_links?.some(({ rel }) => rel === "next") === true;
  return { servers: found, next: more ? (page.servers.at(-1)?.id ?? null) : null };
}

function serverOf(each: z.infer<typeof server>, tag: string, index: number): Server {
  const task = each["OS-EXT-STS:task_state"] ?? "";
  const why = cleanText(each.fault?.message ?? "");
  const reason = cleanText([each.status, why === "" ? task : why].filter((word) => word !== "").join(": "));
  const { state, ending } = stateOf(each.status);
  const fault = each.status === "ERROR" ? ({ kind: "limit", text: reason } as const) : null;
  const sighting = { tag, index, id: each.id, state, reason, user: null, host: null, ending, fault };
  return {
    sighting,
    created: each.created ?? "",
    over: state === "ended" && task !== "deleting",
    vcpus: each.flavor?.vcpus ?? 0,
    ram_mb: each.flavor?.ram ?? 0,
    isSilent: each.status === "ERROR" && why === "",
  };
}

/** Returns the server of GET /servers/ID; null: it is none of ours. */
export function readServer(text: string, of: { readonly complex: string; readonly backend: string }): Server | null {
  const { server: one } = read(z.object({ server: z.unknown() }), text, "a server");
  return readServers(JSON.stringify({ servers: [one] }), of).servers[0] ?? null;
}

/** Returns the quota, of which at least as much counts as used as our own servers take: nova itself counts a server only some time after it has accepted it. */
export function countedQuota({ instances, cores, ram_mb }: Quota, servers: readonly Server[]): Quota {
  const live = servers.filter(({ sighting }) => sighting.state !== "ended");
  const sum = (amount: (each: Server) => number): number => live.reduce((total, each) => total + amount(each), 0);
  return {
    instances: { ...instances, used: Math.max(instances.used, live.length) },
    cores: {
      ...cores,
      used: Math.max(
        cores.used,
        sum(({ vcpus }) => vcpus),
      ),
    },
    ram_mb: {
      ...ram_mb,
      used: Math.max(
        ram_mb.used,
        sum((each) => each.ram_mb),
      ),
    },
  };
}

/** ERROR after an accepted request is normal: no host had room. A server shuts itself down when its runner has left. */
function stateOf(status: string): Pick<RunnerSighting, "state" | "ending"> {
  switch (status) {
    case "BUILD":
      return { state: "queued", ending: null };
    case "ERROR":
      return { state: "ended", ending: "retry" };
    case "SHUTOFF":
    case "STOPPED":
      return { state: "ended", ending: "done" };
    case "DELETED":
    case "SOFT_DELETED":
      return { state: "ended", ending: "retry" };
    case "UNKNOWN":
      return { state: "unknown", ending: null };
    default:
      return { state: "running", ending: null };
  }
}

/** Returns the id of a server that was created. */
export function readCreated(text: string): string {
  return read(z.object({ server: z.object({ id: z.string() }) }), text, "a new server").server.id;
}
