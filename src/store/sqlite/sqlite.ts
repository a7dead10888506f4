// A SQLite connection with promises, cached prepared statements, and errors that tell the administrator what to do. Calls on
// one connection run in the order in which they were made.

import sqlite3 from "sqlite3";
import type { Parameter, Reader } from "../sql-history.ts";
import type { StoreFault } from "../store.ts";
import { StoreError } from "../store.ts";

export type Connection = Reader & {
  readonly file: string;
  run(sql: string, ...parameters: readonly Parameter[]): Promise<void>;
  /** prepares a statement, so that later calls reach SQLite's thread in the turn in which they are made */
  prepare(sql: string): Promise<void>;
  /** runs statements without parameters and rows in one round trip to SQLite's thread */
  exec(...statements: readonly string[]): Promise<void>;
  close(): Promise<void>;
};

/** Opens a database file. Rejects with StoreError. */
export async function openConnection(file: string, access: "create" | "write" | "read"): Promise<Connection> {
  const { OPEN_READONLY, OPEN_READWRITE, OPEN_CREATE } = sqlite3;
  const flags = access === "read" ? OPEN_READONLY : access === "write" ? OPEN_READWRITE : OPEN_READWRITE | OPEN_CREATE;
  const database = await new Promise<sqlite3.Database>((resolve, reject) => {
    const opened: sqlite3.Database = new sqlite3.Database(file, flags, (error) =>
      error === null ? resolve(opened) : reject(storeError(file, error)),
    );
  });
  database.serialize();
  database.configure("busyTimeout", 10_000);
  const statements = new Map<string, Promise<sqlite3.Statement>>();

  const prepare = (sql: string): Promise<sqlite3.Statement> => {
    const known = statements.get(sql);
    if (known !== undefined) return known;
    const prepared = new Promise<sqlite3.Statement>((resolve, reject) => {
      const statement: sqlite3.Statement = database.prepare(sql, (error: Error | null) =>
        error === null ? resolve(statement) : reject(storeError(file, error)),
      );
    });
    statements.set(sql, prepared);
    prepared.catch(() => statements.delete(sql));
    return prepared;
  };

  return {
    file,
    name: file,
    async run(sql, ...parameters) {
      const statement = await prepare(sql);
      await new Promise<void>((resolve, reject) => {
        statement.run(...parameters, (error: Error | null) => {
          // A statement that is not reset stays in progress: VACUUM would be refused, and read transactions would not end.
          statement.reset();
          if (error === null) resolve();
          else reject(storeError(file, error));
        });
      });
    },
    async prepare(sql) {
      await prepare(sql);
    },
    exec: (...texts) =>
      new Promise<void>((resolve, reject) => {
        database.exec(texts.join(";"), (error) => (error === null ? resolve() : reject(storeError(file, error))));
      }),
    async all<T>(sql: string, ...parameters: readonly Parameter[]): Promise<T[]> {
      const statement = await prepare(sql);
      return new Promise<T[]>((resolve, reject) => {
        statement.all(...parameters, (error: Error | null, rows: T[]) => {
          statement.reset();
          if (error === null) resolve(rows);
          else reject(storeError(file, error));
        });
      });
    },
    async close() {
      for (const statement of await Promise.allSettled(statements.values())) {
        if (statement.status === "fulfilled") await new Promise<void>((resolve) => statement.value.finalize(() => resolve()));
      }
      statements.clear();
      await new Promise<void>((resolve, reject) =>
        database.close((error) => (error === null ? resolve() : reject(storeError(file, error)))),
      );
    },
  };
}

const FAULTS: { readonly [code: string]: readonly [StoreFault, string] } = {
  SQLITE_FULL: ["disk-full", "the disk is full: make room and try again"],
  SQLITE_CORRUPT: ["corrupt", "the store is damaged: put a backup in its place (`partita backup` makes them)"],
  SQLITE_NOTADB: ["corrupt", "the store is damaged or not a store at all: put a backup in its place"],
  SQLITE_BUSY: ["locked", "another process is using the store"],
  SQLITE_LOCKED: ["locked", "another process is using the store"],
  SQLITE_READONLY: ["permission", "the store cannot be written: check owner and mode of the file and its directory"],
  SQLITE_PERM: ["permission", "no permission for the store: check owner and mode of the file and its directory"],
  SQLITE_CANTOPEN: ["permission", "the store cannot be opened: check that its directory exists, and owner and mode of both"],
  SQLITE_IOERR: ["io", "the disk refuses: see the kernel's log"],
};

/** Turns an error of sqlite into a StoreError that names the file. */
export function storeError(file: string, error: Error): StoreError {
  if (error instanceof StoreError) return error;
  const code = (error as Error & { readonly code?: string }).code ?? "";
  const [fault, help] = FAULTS[code] ?? (["io", "unexpected error"] as const);
  return new StoreError(fault, `${file}: ${help} (${error.message})`, error);
}
