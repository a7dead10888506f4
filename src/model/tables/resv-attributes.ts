// Attributes of reservations (docs/reference/attributes.md 7).

import { type AttributeRow, attributeTable } from "../attribute.ts";
import { isMailUser } from "../attribute-checks.ts";
import { PBSE } from "../pbse.ts";

const RUN = { runAlterable: true } as const;

const isMailPoints = (text: string): boolean => /^(n|[abce]+)$/.test(text);

// biome-ignore format: one row per attribute
const ROWS: readonly AttributeRow[] = [
  ["Reserve_Name", "name", "all", "user", "name of the reservation", RUN],
  ["Reserve_Owner", "string", "all", "pbs", "who made the reservation, and where"],
  ["reserve_state", "integer", "all", "pbs", "state of the reservation", { default: 1 }],
  ["reserve_substate", "integer", "all", "pbs", "where in its state the reservation is", { default: 1 }],
  ["reservation_Tag", "integer", "all", "pbs", "unused", { createOnly: true }],
  ["reserve_ID", "string", "all", "pbs", "id of the reservation", { createOnly: true }],
  ["reserve_start", "time", "all", "user", "when the reservation begins", { ...RUN, rangeError: PBSE.BADTSPEC }],
  ["reserve_end", "time", "all", "user", "when the reservation ends", { ...RUN, rangeError: PBSE.BADTSPEC }],
  ["reserve_duration", "duration", "all", "user", "how long the reservation lasts", RUN],
  ["queue", "string", "all", "pbs", "queue of the reservation's jobs"],
  ["Resource_List", "resource_list", "all", "user", "resources reserved", RUN],
  ["schedselect", "string", "mgr", "pbs", "select with all defaults filled in"],
  ["resources_used", "resource_list", "all", "pbs", "unused"],
  ["resv_nodes", "string", "all", "pbs", "vnodes reserved and how much of them"],
  ["User_List", "string_array", "all", "user", "unused"],
  ["group_list", "string_array", "all", "user", "group of the reservation"],
  ["Authorized_Users", "string_array", "all", "user", "users who may submit to the reservation"],
  ["Authorized_Groups", "string_array", "all", "user", "groups that may submit to the reservation"],
  ["Authorized_Hosts", "string_array", "all", "user", "hosts from which jobs may be submitted to the reservation"],
  ["server", "string", "all", "pbs", "server the reservation belongs to"],
  ["Account_Name", "string", "all", "user", "unused"],
  ["ctime", "time", "all", "pbs", "when the reservation was made"],
  ["Mail_Points", "string", "all", "user", "when mail is sent: a aborted, b begun, c confirmed, e ended, n never", { ...RUN, assumed: "ac", check: isMailPoints }],
  ["Mail_Users", "string_array", "all", "user", "who gets the mail", { ...RUN, check: isMailUser }],
  ["mtime", "time", "all", "pbs", "when the reservation last changed"],
  ["hashname", "string", "mgr", "pbs", "base name of the reservation's files"],
  ["hop_count", "integer", "none", "pbs", "internal"],
  ["Priority", "integer", "all", "user", "unused", { ...RUN, min: -1024, max: 1023 }],
  ["interactive", "integer", "all", "user", "seconds pbs_rsub waits for the answer", { default: 0 }],
  ["Variable_List", "string_array", "all", "user", "environment of the submission", { verbatim: true, characters: "any" }],
  ["euser", "string", "mgr", "pbs", "user of the reservation"],
  ["egroup", "string", "mgr", "pbs", "group of the reservation"],
  ["qmove", "string", "all", "user", "job that becomes a reservation"],
  ["reserve_standing", "integer", "all", "user", "1: the reservation recurs", RUN],
  ["reserve_rrule", "string", "all", "user", "rule of recurrence"],
  ["reserve_index", "integer", "all", "user", "number of the present occurrence", RUN],
  ["reserve_count", "integer", "all", "user", "number of occurrences", RUN],
  ["reserve_execvnodes", "string", "all", "user", "vnodes of all occurrences"],
  ["reserve_timezone", "string", "all", "user", "time zone of the rule"],
  ["reserve_retry", "time", "all", "user", "when the next attempt to confirm is made"],
  ["delete_idle_time", "duration", "all", "user", "the reservation is deleted when it was idle that long"],
  ["reserve_job", "name", "all", "user", "job the reservation was made from"],
  ["schedselect_orig", "string", "mgr", "pbs", "internal"],
  ["Submit_Host", "string", "all", "user", "host the reservation was made on"],
  ["credential_id", "string", "all", "user", "principal of the credential"],
  ["node_set", "string_array", "none", "mgr", "internal"],
  ["partition", "string", "all", "pbs", "partition whose scheduler confirmed the reservation"],
  ["reserve_alter_revert", "resource_list", "mgr", "pbs", "values to return to when an alteration is denied"],
  ["reserve_standing_revert", "resource_list", "mgr", "pbs", "values to return to when an alteration is denied"],
];

export const RESV_ATTRIBUTES = attributeTable("resv", ROWS);
