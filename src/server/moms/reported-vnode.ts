// Converts a mom's report about a vnode to the types that the server knows. This is necessary because a mom guesses the
// types of the site's resources (docs/reference/execution.md 7), and because data from a link may be malformed.
//
// I1. The result holds only values that qmgr could have set and that a mom may report.
// I2. A mom may name only its own host, so that jobs that request another host (select=host=...) do not run on its vnodes.

import type { AttributeValue } from "#model/attribute.ts";
import { isObjectName } from "#model/object-names.ts";
import { Reject } from "#model/pbse.ts";
import { NODE_ATTRIBUTES } from "#model/tables/node-attributes.ts";
import { parseValue } from "#model/values/index.ts";
import type { MomVnode } from "#protocol/mom-link.ts";
import { isRecord } from "#support/guards.ts";
import type { ServerState } from "../state/state.ts";

/** Attributes that only an administrator or the server sets. */
const NOT_FOR_MOMS: ReadonlySet<string> = new Set([
  "Mom",
  "Port",
  "state",
  "jobs",
  "resv",
  "resources_assigned",
  "queue",
  "maintenance_jobs",
  "pbs_version",
  "ntype",
  "license",
  "last_state_change_time",
  "last_used_time",
]);

export type CheckedVnode = { readonly vnode: MomVnode | null /** what was left out, for the log */; readonly refused: readonly string[] };

/** The vnode with the accepted values; null: its name is illegal. host: the mom's. */
export function checkVnode(state: Pick<ServerState, "resources">, host: string, { name, attrs }: MomVnode): CheckedVnode {
  if (!isObjectName("node", name)) return { vnode: null, refused: ["its name"] };
  const refused: string[] = [];
  const checked: { [name: string]: unknown } = {};
  const read = (attribute: string, value: unknown, resource?: string): AttributeValue | undefined => {
    const def = NODE_ATTRIBUTES.byName(attribute);
    const text = textOf(value);
    const isForeign = resource === "host" && text?.toLowerCase() !== host.toLowerCase();
    try {
      if (!isForeign && def !== undefined && text !== null && !NOT_FOR_MOMS.has(def.name))
        return parseValue(def, text, state.resources, resource);
    } catch (error) {
      if (!(error instanceof Reject)) throw error;
    }
    refused.push(resource === undefined ? attribute : `${attribute}.${resource}`);
    return undefined;
  };
  for (const [attribute, value] of Object.entries(attrs)) {
    if (attribute === "resources_available") {
      const resources = isRecord(value) ? Object.entries(value).map(([resource, amount]) => read(attribute, amount, resource)) : [];
      checked[attribute] = Object.assign({}, ...resources);
      continue;
    }
    const known = read(attribute, value);
    if (known !== undefined) checked[NODE_ATTRIBUTES.byName(attribute)?.name ?? attribute] = known;
  }
  return { vnode: { name, attrs: checked }, refused };
}

function textOf(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return Array.isArray(value) && value.every((entry) => typeof entry === "string") ? value.join(",") : null;
}
