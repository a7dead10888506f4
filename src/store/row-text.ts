// Texts of rows as a database has them.

import { type Data, StoreError } from "./store.ts";

/**
 * Parses the text of a row. store: name of the store in messages. A text that is not JSON was never written by us, so the store is damaged in a way that the
 * database's own checks do not detect.
 */
export function parseData(store: string, table: string, name: string, text: string, parse: (text: string) => Data = JSON.parse): Data {
  try {
    return parse(text);
  } catch (error) {
    throw damagedRow(store, table, name, error);
  }
}

export const damagedRow = (store: string, table: string, name: string, cause?: unknown): StoreError =>
  new StoreError("corrupt", `${store}: the row of ${name} in ${table} is damaged: put a backup in its place`, cause);
