// The requests that a queue allows: resources_min and resources_max of the queue; the server's maximum if the queue has none (15036).

import type { ResourceValues } from "#model/attribute.ts";
import { resourcesOf } from "#model/attribute-reader.ts";
import { PBSE, reject } from "#model/pbse.ts";
import type { ResourceDef } from "#model/resource-table.ts";
import { compareResourceValues } from "#model/values/resource-value.ts";
import type { Attrs } from "../state/state.ts";

type Resources = ReadonlyMap<string, ResourceDef>;

/** list: Resource_List with defaults and sums. Values without an order are not bounded. */
export function checkBounds(list: ResourceValues, queue: Attrs, server: Attrs, resources: Resources): void {
  const queue_max = resourcesOf(queue, "resources_max");
  const server_max = resourcesOf(server, "resources_max");
  bound(list, resourcesOf(queue, "resources_min"), resources, (order) => order >= 0);
  bound(list, { ...server_max, ...queue_max }, resources, (order) => order <= 0);
}

function bound(list: ResourceValues, bounds: ResourceValues, resources: Resources, isWithin: (order: number) => boolean): void {
  for (const name of Object.keys(bounds)) {
    const def = resources.get(name);
    const [asked, limit] = [list[name], bounds[name]];
    if (def === undefined || asked === undefined || limit === undefined) continue;
    const order = compareResourceValues(def, asked, limit);
    if (order !== null && !isWithin(order)) throw reject(PBSE.EXCQRESC);
  }
}
