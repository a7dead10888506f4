// database.conf, and what errors of PostgreSQL mean.

import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { databaseError, isUndone } from "#store/postgres/faults.ts";
import { isLocal, nameOfDatabase, parseSettings, readSettings } from "#store/postgres/settings.ts";
import { storeKind } from "#store/store-choice.ts";
import { inDirectory, isFault } from "./bed.ts";

test("database.conf: every setting has a default", () => {
  assert.deepEqual(parseSettings("", "root"), {
    hosts: [{ host: "/var/run/postgresql", port: 5432 }],
    database: "partita",
    user: "root",
    password: null,
    schema: "partita",
    tls: undefined,
    root_cert: null,
    cert: null,
    key: null,
    connect_s: 5,
    statement_s: 30,
    patience_s: 60,
    beat_s: 2,
    silence_s: 7,
    mom_probes: 32,
    mom_silence_s: 3,
    settle_s: 60,
  });
});

test("database.conf: what is stated", () => {
  const settings = parseSettings(
    'host = db1, db2\nport = 5432,5433\ndbname = batch\nuser = pbs\npassword = "x = #y"\nschema = c1\nsslmode = require\nsilence = 10\nbeat = 0.5\n# end',
    "root",
  );
  assert.ok(typeof settings !== "string", String(settings));
  assert.deepEqual(settings.hosts, [
    { host: "db1", port: 5432 },
    { host: "db2", port: 5433 },
  ]);
  assert.deepEqual([settings.database, settings.user, settings.password, settings.tls], ["batch", "pbs", "x = #y", "require"]);
  assert.equal(nameOfDatabase(settings), "PostgreSQL db1:5432,db2:5433/batch.c1");
});

test("database.conf: mistakes are named, without the password", () => {
  const table: readonly (readonly [line: string, mistake: RegExp])[] = [
    ["pasword = secret", /^there is no setting pasword; there are host, port/],
    ["host = a,,b", /^host: /],
    ["port = 0", /^port: numbers/],
    ["port = 5432x", /^port: numbers/],
    ["host = a,b,c\nport = 1,2", /^port: one number for all hosts/],
    ["schema = Public; DROP", /^schema: /],
    [`schema = ${"x".repeat(38)}`, /^schema: /],
    ["sslmode = prefer", /^sslmode: one of/],
    ["sslcert = /x", /^sslcert and sslkey/],
    ["patience = soon", /^patience: seconds from 1 to 86400/],
    ["patience =", /^patience: seconds/],
    ["statement_timeout = 0", /^statement_timeout: seconds/],
    ["beat = 5\nsilence = 10", /^silence: at least three times beat/],
    ["mom_probes = 2.5", /^mom_probes: a whole number/],
    ["mom_probes = 257", /^mom_probes: a number from 0 to 256/],
  ];
  for (const [line, mistake] of table) {
    const found = parseSettings(`password = hidden\n${line}`, "root");
    assert.ok(typeof found === "string", line);
    assert.match(found, mistake);
    assert.doesNotMatch(found, /hidden|secret/);
  }
});

test("database.conf: only the server's user may read it", async () => {
  await inDirectory(async (_, dir) => {
    const file = join(dir, "database.conf");
    assert.throws(() => readSettings(file, "root"), isFault("permission", /database.conf: it does not exist: write into it how to reach/));
    writeFileSync(file, "password = hidden\n", { mode: 0o600 });
    assert.equal(readSettings(file, "root").password, "hidden");
    for (const mode of [0o640, 0o604]) {
      chmodSync(file, mode);
      assert.throws(() => readSettings(file, "root"), isFault("permission", /its mode is 6[04][04]; it must be 600/));
    }
    writeFileSync(file, "passwort = hidden\n");
    chmodSync(file, 0o600);
    assert.throws(() => readSettings(file, "root"), isFault("permission", /database.conf: there is no setting passwort/));
  });
});

test("hosts of this machine need no encryption", () => {
  for (const host of ["/run", "localhost", "127.0.0.1", "::1"]) assert.equal(isLocal(host), true, host);
  for (const host of ["db1", "10.0.0.1", "localhost.example.org"]) assert.equal(isLocal(host), false, host);
});

test("errors of PostgreSQL: fault and remedy", () => {
  const error = (code: string, severity = "ERROR"): Error => Object.assign(new Error("its own words"), { code, severity });
  for (const [caught, fault, text] of [
    [error("53100"), "disk-full", /^db: the disk of the database is full: make room there \(its own words\)$/],
    [error("28P01", "FATAL"), "permission", /the database refuses the login/],
    [error("3D000", "FATAL"), "permission", /createdb/],
    [error("57P03", "FATAL"), "away", /starts or ends/],
    [error("08006", "FATAL"), "away", /connection to the database was lost/],
    [error("25006"), "permission", /accepts no writes/],
    [error("XX001"), "corrupt", /damaged data/],
    [error("PT001"), "deposed", /another server/],
    [error("22000"), "io", /reports an error/],
    [Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }), "away", /cannot be reached \(connect ECONNREFUSED\)/],
    [new Error("Connection terminated unexpectedly"), "away", /cannot be reached/],
  ] as const)
    assert.ok(isFault(fault, text)(databaseError("db", caught)), databaseError("db", caught).message);
  assert.deepEqual([isUndone(error("53100")), isUndone(error("53100", "PANIC")), isUndone(new Error("x"))], [true, false, false]);
});

test("pbs.conf: PARTITA_STORE names the store", () => {
  const kind = (values: Readonly<Record<string, string>>) => storeKind({ file: "/etc/pbs.conf", values });
  assert.deepEqual([kind({}), kind({ PARTITA_STORE: "postgres" }), kind({ PARTITA_STORE: "sqlite" })], ["sqlite", "postgres", "sqlite"]);
  assert.throws(() => kind({ PARTITA_STORE: "mysql" }), /^ConfError: \/etc\/pbs.conf: PARTITA_STORE=mysql: one of sqlite, postgres$/);
});
