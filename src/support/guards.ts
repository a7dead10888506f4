// Type guards for values of unknown type, such as contents of files, messages and settings. Pure.

/** Whether a value is an object with named members: neither null nor a list. */
export const isRecord = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether a value is a list. Unlike Array.isArray, this guard also separates readonly lists from the other members of a union. */
export const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value);

/** Whether a value is a list that contains only texts. */
export const isTextList = (value: unknown): value is readonly string[] => isList(value) && value.every((item) => typeof item === "string");

/** Whether a name is one of the keys of a table. */
export function isKeyOf<T extends object>(table: T, name: PropertyKey): name is keyof T {
  return Object.hasOwn(table, name);
}
