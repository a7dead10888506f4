// Which of two servers a process is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { pairRole } from "#protocol/failover/pair-role.ts";
import { makeConf } from "#support/conf.ts";

const BASE = "PBS_HOME=/h\nPBS_EXEC=/e\nPBS_SERVER=head\n";
const role = (lines: string, hostname: string) => {
  const conf = makeConf("/etc/pbs.conf", BASE + lines, {}, { hostname, uid: 1 });
  return pairRole(conf, hostname);
};

test("pair: the role follows from the names of the hosts, with or without domain", () => {
  const pair = "PBS_PRIMARY=head.example.org\nPBS_SECONDARY=spare.example.org\n";
  assert.equal(role("", "head"), null);
  assert.equal(role("PBS_PRIMARY=head\n", "head"), null, "both must be set");
  assert.equal(role(pair, "head.example.org"), "primary");
  assert.equal(role(pair, "Spare"), "secondary");
  assert.equal(role(`${pair}PBS_MOM_NODE_NAME=spare\n`, "other-name"), "secondary");
});

test("pair: two servers of one machine differ by their ports", () => {
  const pair = "PBS_PRIMARY=localhost:15001\nPBS_SECONDARY=localhost:15011\n";
  assert.equal(role(pair, "m"), "primary");
  assert.equal(role(`${pair}PBS_BATCH_SERVICE_PORT=15011\n`, "m"), "secondary");
});

test("pair: a server that is neither or both is refused", () => {
  assert.throws(() => role("PBS_PRIMARY=a\nPBS_SECONDARY=b\n", "c"), /neither is this host \(c, port 15001\)/);
  assert.throws(() => role("PBS_PRIMARY=a\nPBS_SECONDARY=a\n", "a"), /both are this host/);
});
