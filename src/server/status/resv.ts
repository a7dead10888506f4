// Status of reservations (pbs_rstat), in the order of the requested ids; without ids, in the order of creation.

import { PBSE, reject } from "#model/pbse.ts";
import { RESV_ATTRIBUTES } from "#model/tables/resv-attributes.ts";
import type { StatusItem, StatusRequest } from "#protocol/messages.ts";
import { columnsOf, encode } from "../attributes/encode.ts";
import { isOwner, seesOthers } from "../attributes/permission.ts";
import type { Transaction } from "../engine/transaction.ts";
import { fullResvId } from "../resv/access.ts";
import { resvResources } from "../resv/records.ts";
import type { Attrs, Resv } from "../state/state.ts";

/** The attributes that the caller may see. The job that a reservation was made from is shown only to users who may see that job (query_other_jobs). */
function seenBy(tx: Transaction, { attrs }: Resv): Attrs {
  const { reserve_job, qmove, ...others } = attrs as Attrs;
  if ((reserve_job === undefined && qmove === undefined) || seesOthers(tx) || isOwner(tx, String(attrs["Reserve_Owner"]))) return attrs;
  return others;
}

export function resvStatus(tx: Transaction, { ids, attrs }: StatusRequest): StatusItem[] {
  const { state } = tx;
  const columns = columnsOf(state, tx.who, RESV_ATTRIBUTES, attrs);
  const names = ids.length === 0 ? [...state.resvs.keys()] : ids.map((id) => fullResvId(state.name, id));
  const { code, text } = reject(PBSE.UNKRESVID);
  return names.map((id) => {
    const resv = state.resvs.get(id);
    if (resv === undefined) return { id, code, text };
    const wire = encode(columns, seenBy(tx, resv));
    const list = wire["Resource_List"] as { readonly [resource: string]: string } | undefined;
    if (list === undefined) return { id, attrs: wire };
    const ordered = Object.keys(resvResources(state, resv.attrs)).flatMap((name) => {
      const text = list[name];
      return text === undefined ? [] : [[name, text] as const];
    });
    return { id, attrs: { ...wire, Resource_List: Object.fromEntries(ordered) } };
  });
}
