// Which store a complex has, and the paths of its files. The key PARTITA_STORE of pbs.conf names the store. It is not taken
// from the environment, because a server that began another store would not know its jobs.

import { join } from "node:path";
import { type Conf, ConfError } from "#support/conf.ts";

export type StoreKind = "sqlite" | "postgres";

/** The kind of the store (default: sqlite). Throws ConfError for a value that names none. */
export function storeKind({ file, values }: Pick<Conf, "file" | "values">): StoreKind {
  const stated = values["PARTITA_STORE"] ?? "sqlite";
  if (stated === "sqlite" || stated === "postgres") return stated;
  throw new ConfError(`${file}: PARTITA_STORE=${stated}: one of sqlite, postgres`);
}

/** The file of the SQLite store. The mark of a store is beside this file, whatever the kind of the store. */
export const storeFile = ({ home }: Pick<Conf, "home">): string => join(home, "server_priv", "partita.db");

/** The file with the settings of the PostgreSQL store. */
export const databaseFile = ({ home }: Pick<Conf, "home">): string => join(home, "server_priv", "database.conf");
