// Reads the request of a job of a campaign, for clusters that do not know the select of PBS. Pure.

import { parsePlace } from "#model/request/place.ts";
import { readSelect } from "#model/request/select.ts";
import { parseSize, sizeBytes } from "#model/values/size.ts";
import type { JobResources } from "./cluster.ts";
import { BackendError } from "./fault.ts";

/** Equal chunks. mem_kb: of one chunk; null: not asked for. others: further resources, as text. spread: each chunk on a host of its own. pack: all on one host. */
export type EqualChunks = {
  readonly count: number;
  readonly ncpus: number;
  readonly mem_kb: number | null;
  readonly others: Readonly<Record<string, string>>;
  readonly arrangement: "free" | "spread" | "pack";
  readonly isExclusive: boolean;
};

/** Returns the request as equal chunks. Throws a BackendError of the kind `impossible` if this cannot be done. system: the name of the batch system, for the message. */
export function equalChunks(resources: JobResources, system: string): EqualChunks {
  const wrong = (text: string): never => {
    throw new BackendError({ kind: "impossible", text: `${system}: ${text}` });
  };
  if (resources.kind !== "select") return wrong("resources are taken as select only");
  const select = readSelect(resources.select);
  const [chunk, ...more] = select?.chunks ?? [];
  if (chunk === undefined) return wrong(`${resources.select}: the select cannot be read`);
  if (more.length > 0) return wrong(`${resources.select}: a job may only have chunks of one kind`);
  const others: Record<string, string> = {};
  let [ncpus, mem_kb]: [number, number | null] = [1, null];
  for (const { name, text } of chunk.pairs) {
    if (name === "ncpus") ncpus = Number(text);
    else if (name === "mem") {
      const size = parseSize(text);
      mem_kb = size === null ? wrong(`mem=${text}: no size`) : Math.ceil(sizeBytes(size) / 1024);
    } else if (name !== "mpiprocs" && name !== "ompthreads") others[name] = text;
  }
  if (!Number.isInteger(ncpus) || ncpus < 1) return wrong(`ncpus=${ncpus}: a number of cpus is expected`);
  const place = resources.place === null ? null : parsePlace(resources.place);
  if (place?.group !== undefined) return wrong(`place=${resources.place}: groups are known only to PBS`);
  const arrangement = { free: "free", pack: "pack", scatter: "spread", vscatter: "spread" } as const;
  return {
    count: chunk.count ?? 1,
    ncpus,
    mem_kb,
    others,
    arrangement: arrangement[place?.arrangement ?? "free"],
    isExclusive: place?.sharing === "excl" || place?.sharing === "exclhost",
  };
}
