import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfError, makeConf, parseConfText } from "#support/conf.ts";

const machine = { hostname: "svr.example.org", uid: 1000, ownerOf: () => null };
const BASE = "PBS_EXEC=/opt/pbs\nPBS_HOME=/var/spool/pbs\nPBS_SERVER=svr\n";

test("pbs.conf: lines, comments, blanks, quotes; the last line of a name wins", () => {
  const rows: [text: string, name: string, value: string | undefined][] = [
    ["A=1", "A", "1"],
    ["  A = 1  ", "A", "1"],
    ["# A=1", "A", undefined],
    ["A=", "A", ""],
    ['A="x y"', "A", "x y"],
    ["A='x'", "A", "x"],
    ["A=a=b", "A", "a=b"],
    ["A=1\nA=2", "A", "2"],
    ["export A=1", "A", "1"],
    ["=1", "", undefined],
    ["nonsense", "nonsense", undefined],
    ["A=1\r", "A", "1"],
  ];
  for (const [text, name, value] of rows) assert.equal(parseConfText(text)[name], value, JSON.stringify(text));
});

test("pbs.conf: what is missing is named as PBS names it, and only that", () => {
  const rows: [text: string, missing: string][] = [
    ["", "PBS_HOME PBS_EXEC PBS_SERVER"],
    ["PBS_HOME=/h", "PBS_EXEC PBS_SERVER"],
    ["PBS_HOME=/h\nPBS_EXEC=/e", "PBS_SERVER"],
    ["PBS_SERVER=s\nPBS_EXEC=/e", "PBS_HOME"],
  ];
  for (const [text, missing] of rows) {
    assert.throws(
      () => makeConf("/etc/pbs.conf", text, {}, machine),
      new ConfError(`pbsconf error: pbs conf variables not found: ${missing}`),
    );
  }
});

test("pbs.conf: the environment overrides known names, unknown keys are kept, PBS_ENVIRONMENT of a job is not the file's", () => {
  const conf = makeConf(
    "/c",
    `${BASE}SITE_KEY=x\nPBS_CORE_LIMIT=unlimited\n`,
    { PBS_SERVER: "other", SITE_KEY: "y", PBS_ENVIRONMENT: "PBS_BATCH" },
    machine,
  );
  assert.equal(conf.server, "other");
  assert.equal(conf.own_server, "svr");
  assert.equal(makeConf("/c", BASE, { PBS_DEFAULT: "other" }, machine).server, "svr");
  assert.equal(makeConf("/c", "PBS_EXEC=/e\nPBS_HOME=/h\n", { PBS_SERVER: "other" }, machine).own_server, "other");
  assert.equal(conf.values["SITE_KEY"], "x");
  assert.equal(conf.values["PBS_CORE_LIMIT"], "unlimited");
  assert.equal(conf.environment_file, "/var/spool/pbs/pbs_environment");
});

test("pbs.conf: defaults, old name of the server, flags, ports, mode", () => {
  const conf = makeConf(
    "/c",
    "PBS_EXEC=/e\nPBS_HOME=/h\nPBS_DEFAULT=svr\nPBS_START_SERVER=1\nPBS_START_MOM=0\nPBS_LOG_HIGHRES_TIMESTAMP=1",
    {},
    machine,
  );
  assert.equal(conf.server, "svr");
  assert.deepEqual(conf.start, { server: true, sched: false, mom: false, comm: false });
  assert.deepEqual(conf.port, { server: 15001, mom: 15002, manager: 15003, sched: 15004 });
  assert.equal(conf.mom_node_name, "svr");
  assert.equal(conf.mom_home, "/h");
  assert.equal(conf.log_highres, true);
  assert.equal(conf.mode, "user");
});

test("pbs.conf: the mode stands there, or PBS_HOME's owner tells it, or who will make PBS_HOME", () => {
  const rows: [text: string, owner: number | null, uid: number, mode: string][] = [
    ["", 0, 1000, "system"],
    ["", 1000, 1000, "user"],
    ["", 1000, 0, "user"],
    ["", null, 0, "system"],
    ["", null, 1000, "user"],
    ["PARTITA_MODE=user", 0, 0, "user"],
    ["PARTITA_MODE=system", 1000, 1000, "system"],
  ];
  for (const [text, owner, uid, mode] of rows)
    assert.equal(makeConf("/c", `${BASE}${text}`, {}, { hostname: "h", uid, ownerOf: () => owner }).mode, mode, `${text} ${owner} ${uid}`);
});

test("pbs.conf: a port that is none falls back, a colon in a host name is refused", () => {
  assert.equal(makeConf("/c", `${BASE}PBS_MOM_SERVICE_PORT=70000`, {}, machine).port.mom, 15002);
  assert.equal(makeConf("/c", `${BASE}PBS_MOM_SERVICE_PORT=9002`, {}, machine).port.mom, 9002);
  assert.throws(
    () => makeConf("/c", `${BASE}PBS_MOM_NODE_NAME=a:1`, {}, machine),
    /^ConfError: pbsconf error: illegal value for: PBS_MOM_NODE_NAME$/,
  );
});

test("pbs.conf: jobs' temporary directories lie in the user's own PBS_HOME in user mode", () => {
  const rows: [text: string, tmpdir: string][] = [
    ["PARTITA_MODE=user", "/var/spool/pbs/tmp"],
    ["PARTITA_MODE=system", "/var/tmp"],
    ["PARTITA_MODE=user\nPBS_TMPDIR=/scratch", "/scratch"],
  ];
  for (const [text, tmpdir] of rows) assert.equal(makeConf("/etc/pbs.conf", BASE + text, {}, machine).tmpdir, tmpdir, text);
});

test("pbs.conf: where the servers are", () => {
  const at = (host: string, port = 15001) => ({ host, port });
  const rows: [lines: string, servers: unknown, pair: unknown][] = [
    ["", [at("svr")], null],
    ["PBS_SERVER_HOST_NAME=h.example.org\nPBS_BATCH_SERVICE_PORT=7", [at("h.example.org", 7)], null],
    ["PBS_PRIMARY=a\nPBS_SECONDARY=b", [at("a"), at("b")], { primary: at("a"), secondary: at("b") }],
    ["PBS_PRIMARY=a:7\nPBS_SECONDARY=b", [at("a", 7), at("b")], { primary: at("a", 7), secondary: at("b") }],
    ["PBS_BATCH_SERVICE_PORT=9\nPBS_PRIMARY=10.0.0.1\nPBS_SECONDARY=[fd00::2]:8", [at("10.0.0.1", 9), at("fd00::2", 8)], undefined],
    ["PBS_PRIMARY=fd00::1\nPBS_SECONDARY=b:70000", [at("fd00::1"), at("b")], undefined],
    ["PBS_PRIMARY=a", [at("svr")], null],
    ["PBS_SECONDARY=b", [at("svr")], null],
    ["PBS_PRIMARY=\nPBS_SECONDARY=b", [at("svr")], null],
  ];
  for (const [lines, servers, pair] of rows) {
    const conf = makeConf("/c", `${BASE}${lines}\n`, {}, machine);
    assert.deepEqual(conf.servers, servers, lines);
    if (pair !== undefined) assert.deepEqual(conf.pair, pair, lines);
  }
});
