// The description of the interface (OpenAPI 3.1), made from the attribute tables and the schema of submissions.

import { z } from "zod";
import type { AttributeDef } from "#model/attribute.ts";
import { JOBS, KINDS, type Kind } from "./kinds.ts";
import { SUBMISSION } from "./submission.ts";

type Json = { readonly [name: string]: unknown };

const NAMES = { type: "string" };
const PROBLEM = {
  type: "object",
  properties: { status: { type: "integer" }, title: NAMES, detail: NAMES, pbs_code: { type: "integer" } },
  required: ["status", "title", "detail"],
};

/** Describes all paths. version: of this program. */
export function openApi(version: string): Json {
  return {
    openapi: "3.1.0",
    info: { title: "Partita", version, description: "Jobs, nodes, queues, schedulers and reservations of a complex (docs/web.md)" },
    security: [{ token: [] }],
    paths: Object.fromEntries([...KINDS.flatMap(pathsOf), ["/api/v1/jobs/{id}/explain", { get: EXPLAIN }]]),
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      schemas: { Problem: PROBLEM, ...Object.fromEntries(KINDS.map((kind) => [schemaName(kind), objectSchema(kind)])) },
    },
  };
}

const schemaName = ({ object }: Kind): string => object;
const json = (schema: Json): Json => ({ "application/json": { schema } });
const refused = { description: "refused", content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } } };
const answers = (status: number, description: string, schema?: Json): Json => ({
  [status]: { description, ...(schema === undefined ? {} : { content: json(schema) }) },
  default: refused,
});
const parameter = (name: string, place: "query" | "path", description: string, schema: Json): Json => ({
  name,
  in: place,
  description,
  required: place === "path",
  schema,
});

const ID = parameter("id", "path", "name of the object", NAMES);
const FIELDS = parameter("fields", "query", "only these attributes, with commas between them", NAMES);
const EXPLAIN = {
  operationId: "explainJob",
  summary: "why a job waits",
  parameters: [ID],
  responses: answers(200, "what its scheduler says", { type: "object" }),
};

function pathsOf(kind: Kind): [path: string, operations: Json][] {
  const item = { $ref: `#/components/schemas/${schemaName(kind)}` };
  const page = {
    type: "object",
    properties: { items: { type: "array", items: item }, next_cursor: { type: ["string", "null"] } },
    required: ["items", "next_cursor"],
  };
  const one = { operationId: `show-${kind.object}`, parameters: [ID, FIELDS], responses: answers(200, `one ${kind.noun}`, item) };
  const list = { operationId: `list-${kind.path}`, parameters: listParameters(kind), responses: answers(200, "a page of the list", page) };
  const ofJobs = kind === JOBS;
  return [
    [`/api/v1/${kind.path}`, { get: list, ...(ofJobs ? { post: SUBMIT } : {}) }],
    [`/api/v1/${kind.path}/{id}`, { get: one, ...(ofJobs ? { delete: DELETE } : {}) }],
  ];
}

const CREATED = { type: "object", properties: { id: NAMES }, required: ["id"] };
const SUBMIT = {
  operationId: "submit-job",
  requestBody: { required: true, content: json(z.toJSONSchema(SUBMISSION)) },
  responses: answers(201, "the new job", CREATED),
};
const DELETE = {
  operationId: "delete-job",
  parameters: [ID, parameter("force", "query", "as qdel -W force", { type: "string", enum: ["true", "false"] })],
  responses: answers(204, "the job is deleted, or will be as soon as its mom has ended it"),
};

/** Parameters of a list. Every attribute is a filter; those of resource lists also need the name of a resource, and are not named here. */
function listParameters(kind: Kind): readonly Json[] {
  const filters = kind.table.rows.filter(({ read, type, hidden }) => read !== "none" && type !== "resource_list" && hidden !== true);
  return [
    FIELDS,
    parameter("limit", "query", "most objects on a page", { type: "integer", minimum: 1, maximum: 1000, default: 100 }),
    parameter("cursor", "query", "next_cursor of the page before", NAMES),
    ...(kind === JOBS
      ? [
          parameter("history", "query", "finished jobs as well, or only these", { type: "string", enum: ["with", "only"] }),
          parameter("user", "query", "owner of the jobs", NAMES),
        ]
      : []),
    ...filters.map(({ name, help }) => parameter(name, "query", `filter: ${help}`, NAMES)),
  ];
}

function objectSchema({ table }: Kind): Json {
  const shownRows = table.rows.filter(({ read }) => read !== "none");
  const attributes = {
    type: "object",
    properties: Object.fromEntries(shownRows.map((def) => [def.name, { description: def.help, ...valueSchema(def) }])),
    additionalProperties: false,
  };
  return { type: "object", properties: { id: NAMES, attributes }, required: ["id", "attributes"] };
}

const TEXTS = { anyOf: [NAMES, { type: "array", items: NAMES }] };

/** The form of a value (shown.ts). An integer that JSON numbers cannot hold exactly is a text. */
function valueSchema({ type }: AttributeDef): Json {
  switch (type) {
    case "boolean":
      return { type: "boolean" };
    case "integer":
    case "long64":
    case "time":
      return { anyOf: [{ type: "integer" }, { type: "string", pattern: "^-?[0-9]{16,}$" }] };
    case "resource_list":
    case "entity_limit_res":
      return { type: "object", additionalProperties: TEXTS };
    default:
      return TEXTS;
  }
}
