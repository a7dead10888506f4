// Attributes of vnodes (docs/reference/attributes.md 5).

import { type AttributeRow, attributeTable } from "../attribute.ts";
import { isPartitionName } from "./sched-attributes.ts";

const SHARING_VALUES = ["default_shared", "default_excl", "default_exclhost", "ignore_excl", "force_excl", "force_exclhost"] as const;
const DEFAULT_MOM_PORT = 15002;

// biome-ignore format: one row per attribute
const ROWS: readonly AttributeRow[] = [
  ["Mom", "string_array", "all", "mgr", "host of the mom; given when the node is created", { createOnly: true }],
  ["Port", "integer", "op", "op", "port of the mom; given when the node is created", { createOnly: true, default: DEFAULT_MOM_PORT, min: 1, max: 65535 }],
  ["pbs_version", "string", "op", "pbs", "version of the mom"],
  ["ntype", "keyword", "all", "pbs", "kind of node", { default: "PBS", keywords: ["PBS"] }],
  ["state", "node_state", "all", "op", "offline takes the node out of use, free puts it back", { default: ["state-unknown", "down"] }],
  ["pcpus", "integer", "all", "pbs", "physical processors"],
  ["Priority", "integer", "all", "op", "rank of the node, -1024 to 1023", { min: -1024, max: 1023 }],
  ["jobs", "string", "all", "pbs", "jobs on the node, one entry a processor"],
  ["max_running", "integer", "all", "op", "jobs that may run on the node at once", { min: 0 }],
  ["max_user_run", "integer", "all", "op", "jobs of each user that may run on the node at once", { min: 0 }],
  ["max_group_run", "integer", "all", "op", "jobs of each group that may run on the node at once", { min: 0 }],
  ["no_tasks", "boolean", "all", "op", "obsolete"],
  ["pnames", "string_array", "all", "mgr", "names of resources that form placement sets; advice only"],
  ["resv", "string", "all", "pbs", "reservations that hold the node"],
  ["resources_available", "resource_list", "all", "op", "resources of the node; what is set here goes before what the mom reports"],
  ["resources_assigned", "resource_list", "all", "pbs", "resources that jobs and reservations hold on the node"],
  ["queue", "string", "all", "mgr", "queue whose jobs alone may use the node"],
  ["comment", "string", "all", "op", "free text; the server writes here why a node is down", { characters: "lines" }],
  ["resv_enable", "boolean", "all", "mgr", "whether reservations may use the node", { default: true, restored: true }],
  ["no_multinode_jobs", "boolean", "all", "mgr", "whether jobs that use more than one vnode keep off", { assumed: false }],
  ["sharing", "keyword", "all", "pbs", "whether jobs share the node; set in vnode definition files", { default: "default_shared", keywords: SHARING_VALUES }],
  ["provision_enable", "boolean", "all", "mgr", "whether the node may be provisioned", { assumed: false }],
  ["current_aoe", "string", "all", "mgr", "operating environment the node runs"],
  ["in_multivnode_host", "integer", "mgr", "mgr", "1 when the host has several vnodes"],
  ["maintenance_jobs", "string_array", "mgr", "pbs", "jobs an administrator suspended there"],
  ["license", "char", "all", "pbs", "kept for programs that read it", { default: "l" }],
  ["license_info", "integer", "none", "pbs", "internal"],
  ["topology_info", "string", "none", "pbs", "layout of the host, for hooks"],
  ["vnode_pool", "integer", "all", "mgr", "pool of a vnode", { min: 0 }],
  ["power_provisioning", "boolean", "all", "mgr", "whether energy profiles are used on the node"],
  ["current_eoe", "string", "all", "mgr", "energy profile the node runs with"],
  ["partition", "string", "all", "op", "partition of the node; unset: the default scheduler's", { check: isPartitionName }],
  ["poweroff_eligible", "boolean", "all", "mgr", "whether the node may be switched off"],
  ["last_state_change_time", "time", "all", "pbs", "when the state last changed"],
  ["last_used_time", "time", "all", "pbs", "when a job or reservation last ended there"],
  ["backend", "string", "all", "pbs", "for a runner: the backend that started it"],
  ["backend_id", "string", "all", "pbs", "for a runner: its id in the backend"],
  ["requeue_told", "integer", "none", "pbs", "internal: an earlier, longer node_fail_requeue that the mom may still use, in seconds; 0: for ever"],
  ["runner_bucket", "string", "op", "pbs", "for a runner: the bucket of jobs that it takes"],
  ["runner_end", "time", "all", "pbs", "for a runner: when its walltime ends; no job or reservation there ends later"],
];

export const NODE_ATTRIBUTES = attributeTable("node", ROWS);
