// Attributes stagein and stageout (qsub -W stagein=LOCAL@HOST:PATH,...): pairs of a local file and a file on another host. Pure.

import { parseStageItem } from "#model/values/stage-item.ts";
import { type Attrs, isSameHost } from "./attrs.ts";
import type { PlanFacts } from "./plan-facts.ts";

/** A path on the storage host. host null: it is a path of this host. */
export type Place = { readonly host: string | null; readonly path: string };

/**
 * local: absolute path on this host, may end in a pattern (stageout); remote: path on the storage host, absolute or
 * relative to the owner's home; may end in a pattern (stagein).
 */
export type StageItem = { readonly local: string; readonly remote: Place };

/** The items of one attribute. Relative paths begin in the job's directory on this host, and in the owner's home on the storage host. */
export function stageItems(
  attrs: Attrs,
  name: "stagein" | "stageout",
  owner: { readonly home: string; readonly jobdir: string },
  facts: PlanFacts,
): StageItem[] {
  const list = attrs[name];
  if (!Array.isArray(list)) return [];
  return (list as string[]).flatMap((text) => {
    // The server has refused malformed items.
    const item = parseStageItem(text);
    if (item === null) return [];
    const { local, host, path } = item;
    return [{ local: local.startsWith("/") ? local : `${owner.jobdir}/${local}`, remote: placeOn(host, path, owner.home, facts) }];
  });
}

/** A path of a host as seen from here: on this host, mapped by $usecp, or on another host. */
export function placeOn(host: string | null, path: string, home: string, facts: PlanFacts): Place {
  const absolute = path.startsWith("/") ? path : `${home}/${path}`;
  if (host === null || facts.hosts.some((own) => isSameHost(host, own))) return { host: null, path: absolute };
  for (const [pattern, prefix, local] of facts.usecp)
    if (hostMatches(pattern, host) && absolute.startsWith(prefix)) return { host: null, path: local + absolute.slice(prefix.length) };
  return { host, path };
}

/** `*` stands for the beginning of a name, as in `*.example.org`. */
const hostMatches = (pattern: string, host: string): boolean =>
  pattern.startsWith("*") ? host.toLowerCase().endsWith(pattern.slice(1).toLowerCase()) : isSameHost(pattern, host);
