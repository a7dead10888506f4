// The JSON Schema of campaign files, made from the table of their keys. docs/reference/campaign.schema.json is its text. Pure.

import { JDL_SHAPE } from "./fields.ts";
import { DURATION_MAX_S, DURATION_PATTERN, NAME_PATTERN, type Shape } from "./shape.ts";

type Schema = { readonly [key: string]: unknown };

/** Returns the schema (JSON Schema draft 2020-12). */
export function jdlSchema(): Schema {
  return { $schema: "https://json-schema.org/draft/2020-12/schema", title: "A campaign of Partita", ...schemaOf(JDL_SHAPE) };
}

function schemaOf(shape: Shape): Schema {
  switch (shape.kind) {
    case "text":
      return { type: "string", pattern: shape.pattern.source };
    case "integer":
    case "number":
      return { type: shape.kind, minimum: shape.min, maximum: shape.max };
    case "flag":
      return { type: "boolean" };
    case "choice":
      return { type: "string", enum: shape.values };
    case "duration":
      return {
        anyOf: [
          { type: "string", pattern: DURATION_PATTERN.source },
          { type: "integer", minimum: 1, maximum: DURATION_MAX_S },
        ],
      };
    case "list":
      return { type: "array", items: schemaOf(shape.of), minItems: shape.min };
    case "map":
      return {
        type: "object",
        propertyNames: { pattern: NAME_PATTERN.source },
        additionalProperties: schemaOf(shape.of),
        minProperties: shape.min,
      };
    case "record":
      return {
        type: "object",
        properties: Object.fromEntries(
          Object.entries(shape.fields).map(([key, field]) => [key, { description: field.about, ...schemaOf(field.shape) }]),
        ),
        required: Object.entries(shape.fields).flatMap(([key, { isRequired }]) => (isRequired ? [key] : [])),
        additionalProperties: false,
      };
    default: {
      const unreachable: never = shape;
      return unreachable;
    }
  }
}
