// Checks attributes whose values are names of resources.

import { PBSE, reject } from "#model/pbse.ts";
import type { ServerState } from "../state/state.ts";
import type { Changed } from "./change.ts";

/** Attributes that may name only existing resources. pnames is not one of them, because it may name anything. */
const NAMING = ["node_group_key", "restrict_res_to_release_on_suspend"] as const;

/** Refuses unknown names with 15035. The text of the refusal has no suffix (docs/reference/qmgr.md 5). */
export function checkResourceNames(state: ServerState, { after, touched }: Changed): void {
  for (const attribute of NAMING) {
    const names = touched.has(attribute) ? after[attribute] : undefined;
    if (Array.isArray(names) && names.some((name) => !state.resources.has(String(name)))) throw reject(PBSE.UNKRESC);
  }
}
