// Type guards for values of unknown type, such as contents of files, messages and settings. Pure.

/** An object with named members: neither null nor a list. */
export const isRecord = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A list. Unlike Array.isArray, the guard also separates readonly lists from the other members of a union. */
export const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value);

/** A list of texts alone. */
export const isTextList = (value: unknown): value is readonly string[] => isList(value) && value.every((item) => typeof item === "string");

/** Whether a name is one of the keys of a table. */
export function isKeyOf<T extends object>(table: T, name: PropertyKey): name is keyof T {
  return Object.hasOwn(table, name);
}
