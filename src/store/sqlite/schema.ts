// The tables of the SQLite store, and the migration of older files: step N changes a file of version N to version N+1. The
// version of a file is in its user_version. A step that was released is never changed; only new steps are added.

export type SchemaStep = readonly string[];

/** "PRTT": the application_id of our files. A database of another program has another one and is never changed. */
export const APPLICATION_ID = 0x50525454;

export const SCHEMA_STEPS: readonly SchemaStep[] = [
  [
    "CREATE TABLE server    (name TEXT PRIMARY KEY, data TEXT NOT NULL) STRICT",
    "CREATE TABLE resources (name TEXT PRIMARY KEY, data TEXT NOT NULL) STRICT",
    "CREATE TABLE queues    (name TEXT PRIMARY KEY, data TEXT NOT NULL) STRICT",
    "CREATE TABLE vnodes    (name TEXT PRIMARY KEY, data TEXT NOT NULL) STRICT",
    "CREATE TABLE scheds    (name TEXT PRIMARY KEY, data TEXT NOT NULL) STRICT",
    "CREATE TABLE resvs     (name TEXT PRIMARY KEY, data TEXT NOT NULL) STRICT",
    "CREATE TABLE jobs      (id TEXT PRIMARY KEY, seq INTEGER NOT NULL, data TEXT NOT NULL) STRICT",
    "CREATE TABLE scripts   (id TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT",
    "CREATE TABLE history   (id TEXT PRIMARY KEY, seq INTEGER NOT NULL, owner TEXT NOT NULL, queue TEXT NOT NULL, state TEXT NOT NULL, ended_s INTEGER NOT NULL, data TEXT NOT NULL) STRICT",
    "CREATE INDEX history_order ON history (seq, id)",
    "CREATE INDEX history_owner ON history (owner, seq, id)",
    "CREATE INDEX history_queue ON history (queue, seq, id)",
    "CREATE INDEX history_ended ON history (ended_s)",
    "CREATE TABLE counters  (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT",
  ],
  [
    "ALTER TABLE history ADD COLUMN idx INTEGER NOT NULL DEFAULT -1",
    "DROP INDEX history_order",
    "DROP INDEX history_owner",
    "DROP INDEX history_queue",
    "CREATE INDEX history_order ON history (seq, idx, id)",
    "CREATE INDEX history_owner ON history (owner, seq, idx, id)",
    "CREATE INDEX history_queue ON history (queue, seq, idx, id)",
  ],
  ["CREATE TABLE hooks (name TEXT PRIMARY KEY, data TEXT NOT NULL) STRICT"],
  ["CREATE TABLE run_times (name TEXT PRIMARY KEY, data TEXT NOT NULL) STRICT"],
  ["CREATE TABLE runs (id TEXT PRIMARY KEY, data TEXT NOT NULL) STRICT, WITHOUT ROWID"],
  [
    "CREATE TABLE backends (name TEXT PRIMARY KEY, data TEXT NOT NULL) STRICT",
    "CREATE TABLE runners  (name TEXT PRIMARY KEY, data TEXT NOT NULL) STRICT",
  ],
];
