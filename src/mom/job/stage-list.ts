// Attributes stagein and stageout (qsub -W stagein=LOCAL@HOST:PATH,...): pairs of a local file and a file on another host. Pure.

import { parseStageItem } from "#model/values/stage-item.ts";
import { type Attrs, isSameHost } from "./attrs.ts";
import type { PlanFacts } from "./plan-facts.ts";

/** A path on the storage host. host null: a path of this host. */
export type Place = { readonly host: string | null; readonly path: string };

/**
 * local: an absolute path on this host; in stageout, its last name may be a pattern. remote: a path on the storage host, absolute or relative to the owner's
 * home; in stagein, its last name may be a pattern.
 */
export type StageItem = { readonly local: string; readonly remote: Place };

/** Returns the items of stagein or stageout. A relative local path begins in the job's directory, a relative remote path in the owner's home. */
export function stageItems(
  attrs: Attrs,
  name: "stagein" | "stageout",
  owner: { readonly home: string; readonly jobdir: string },
  facts: PlanFacts,
): StageItem[] {
  const list = attrs[name];
  if (!Array.isArray(list)) return [];
  return (list as string[]).flatMap((text) => {
    // Malformed items are skipped: the server has refused them already.
    const item = parseStageItem(text);
    if (item === null) return [];
    const { local, host, path } = item;
    return [{ local: local.startsWith("/") ? local : `${owner.jobdir}/${local}`, remote: placeOn(host, path, owner.home, facts) }];
  });
}

/** Returns how this host reaches a path of a host: as a local path (on this host, or mapped by $usecp), or as a path on another host. */
export function placeOn(host: string | null, path: string, home: string, facts: PlanFacts): Place {
  const absolute = path.startsWith("/") ? path : `${home}/${path}`;
  if (host === null || facts.hosts.some((own) => isSameHost(host, own))) return { host: null, path: absolute };
  for (const [pattern, prefix, local] of facts.usecp)
    if (hostMatches(pattern, host) && absolute.startsWith(prefix)) return { host: null, path: local + absolute.slice(prefix.length) };
  return { host, path };
}

/** Whether a host matches a pattern of $usecp. `*` stands for the beginning of a name, as in `*.example.org`. */
const hostMatches = (pattern: string, host: string): boolean =>
  pattern.startsWith("*") ? host.toLowerCase().endsWith(pattern.slice(1).toLowerCase()) : isSameHost(pattern, host);
