// Attributes of queues (docs/reference/attributes.md 4). A row with `only` is meant for one type of queue. If the attribute
// is set on a queue of the other type, it is stored, and there is a warning (15026).

import { type AttributeRow, attributeTable } from "../attribute.ts";
import { isPartitionName } from "./sched-attributes.ts";

const OLD = { limitStyle: "old" } as const;
const NEW = { limitStyle: "new" } as const;
const EXEC = { only: "Execution" } as const;
const ROUTE = { only: "Route" } as const;

// biome-ignore format: one row per attribute
const ROWS: readonly AttributeRow[] = [
  ["queue_type", "keyword", "all", "op", "Execution or Route", { keywords: ["Execution", "Route"], prefix: true }],
  ["Priority", "integer", "all", "op", "rank of the queue, -1024 to 1023", { assumed: 0, min: -1024, max: 1023 }],
  ["max_queuable", "integer", "all", "op", "old limit: jobs the queue holds", { ...OLD, min: 0 }],
  ["total_jobs", "integer", "all", "pbs", "jobs in the queue", { default: 0 }],
  ["state_count", "string", "all", "pbs", "number of jobs in each state"],
  ["max_running", "integer", "all", "op", "old limit: jobs running from the queue", { ...OLD, min: 0 }],
  ["max_queued", "entity_limit", "all", "op", "jobs queued or running, per user, group, project or over all", NEW],
  ["max_queued_res", "entity_limit_res", "all", "op", "amount of a resource that queued and running jobs ask for", NEW],
  ["acl_host_enable", "boolean", "all", "op", "whether acl_hosts is enforced", { assumed: false }],
  ["acl_hosts", "acl_host", "all", "op", "hosts from which jobs may come"],
  ["acl_user_enable", "boolean", "all", "op", "whether acl_users is enforced", { assumed: false }],
  ["acl_users", "acl_user", "all", "op", "users who may put jobs into the queue"],
  ["from_route_only", "boolean", "all", "mgr", "whether jobs come only through a routing queue", { assumed: false }],
  ["resources_max", "resource_list", "all", "op", "most a job may ask for; goes before the server's maximum"],
  ["resources_min", "resource_list", "all", "op", "least a job must ask for"],
  ["resources_default", "resource_list", "all", "op", "job-wide resources of jobs that do not ask for them"],
  ["require_cred_enable", "boolean", "all", "mgr", "whether require_cred is enforced", { assumed: false }],
  ["require_cred", "keyword", "all", "mgr", "credential that submitters must have", { keywords: ["krb5", "dce"] }],
  ["max_array_size", "integer", "all", "op", "most subjobs of a job array", { min: 0 }],
  ["comment", "string", "all", "op", "free text", { characters: "lines" }],
  ["acl_group_enable", "boolean", "all", "op", "whether acl_groups is enforced", { assumed: false }],
  ["acl_groups", "acl_group", "all", "op", "groups whose members may put jobs into the queue"],
  ["checkpoint_min", "integer", "all", "op", "shortest checkpoint interval, in minutes of CPU time", { ...EXEC, min: 0 }],
  ["rendezvous_retry", "integer", "all", "op", "obsolete", EXEC],
  ["reserved_expedite", "integer", "all", "op", "obsolete", EXEC],
  ["reserved_sync", "integer", "all", "op", "obsolete", EXEC],
  ["default_chunk", "resource_list", "all", "op", "resources of chunks that do not ask for them", EXEC],
  ["resources_available", "resource_list", "all", "op", "resources that the queue's jobs share", EXEC],
  ["resources_assigned", "resource_list", "all", "pbs", "resources that the queue's running jobs hold", EXEC],
  ["kill_delay", "integer", "all", "op", "seconds between TERM and KILL", { ...EXEC, assumed: 10, min: 0 }],
  ["max_user_run", "integer", "all", "op", "old limit: running jobs of each user", { ...EXEC, ...OLD, min: 0 }],
  ["max_group_run", "integer", "all", "op", "old limit: running jobs of each group", { ...EXEC, ...OLD, min: 0 }],
  ["max_run", "entity_limit", "all", "op", "jobs running, per user, group, project or over all", { ...EXEC, ...NEW }],
  ["max_run_res", "entity_limit_res", "all", "op", "amount of a resource that running jobs use", { ...EXEC, ...NEW }],
  ["max_run_soft", "entity_limit", "all", "op", "running jobs beyond this number may be preempted", { ...EXEC, ...NEW }],
  ["max_run_res_soft", "entity_limit_res", "all", "op", "jobs beyond this amount of a resource may be preempted", { ...EXEC, ...NEW }],
  ["hasnodes", "boolean", "all", "pbs", "whether nodes are attached to the queue", EXEC],
  ["max_user_res", "resource_list", "all", "op", "old limit: amount of a resource that each user's running jobs use", { ...EXEC, ...OLD }],
  ["max_group_res", "resource_list", "all", "op", "old limit: amount of a resource that each group's running jobs use", { ...EXEC, ...OLD }],
  ["max_user_run_soft", "integer", "all", "op", "old soft limit: running jobs of each user", { ...EXEC, ...OLD, min: 0 }],
  ["max_group_run_soft", "integer", "all", "op", "old soft limit: running jobs of each group", { ...EXEC, ...OLD, min: 0 }],
  ["max_user_res_soft", "resource_list", "all", "op", "old soft limit: amount of a resource for each user", { ...EXEC, ...OLD }],
  ["max_group_res_soft", "resource_list", "all", "op", "old soft limit: amount of a resource for each group", { ...EXEC, ...OLD }],
  ["node_group_key", "string_array", "all", "op", "resources whose values form placement sets", EXEC],
  ["backfill_depth", "integer", "all", "op", "top jobs of this queue; unset: the server's number", { ...EXEC, min: 0 }],
  ["route_destinations", "string_array", "all", "mgr", "queues to route to, as queue or queue@server", ROUTE],
  ["alt_router", "boolean", "all", "mgr", "obsolete", ROUTE],
  ["route_held_jobs", "boolean", "all", "op", "whether held jobs are routed", { ...ROUTE, assumed: false }],
  ["route_waiting_jobs", "boolean", "all", "op", "whether jobs that wait for their time are routed", { ...ROUTE, assumed: false }],
  ["route_retry_time", "integer", "all", "op", "seconds between attempts to route a job", { ...ROUTE, assumed: 30, min: 0 }],
  ["route_lifetime", "integer", "all", "op", "seconds a job may stay before it is given up; 0: for ever", { ...ROUTE, assumed: 0, min: 0 }],
  ["enabled", "boolean", "all", "op", "whether the queue takes jobs", { assumed: false }],
  ["started", "boolean", "all", "op", "whether jobs of the queue are scheduled or routed", { assumed: false }],
  ["queued_jobs_threshold", "entity_limit", "all", "op", "jobs waiting in state Q, per user, group, project or over all", NEW],
  ["queued_jobs_threshold_res", "entity_limit_res", "all", "op", "amount of a resource that jobs in state Q ask for", NEW],
  ["partition", "string", "all", "mgr", "partition of an execution queue; unset: the default scheduler's", { check: isPartitionName }],
];

export const QUEUE_ATTRIBUTES = attributeTable("queue", ROWS);
