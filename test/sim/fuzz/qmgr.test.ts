// 50,000 qmgr lines, mutated and random, through qmgr's own session into the server's core, as manager and as user: no crash,
// no hang, no accepted nonsense.
//
// Q1. A line ends with an exit status from 0 to 255; a user's line changes nothing.
// Q2. Afterwards the server's invariants hold, and every value has its type (checkState).
// Q3. The output of print recreates the configuration: read by the same server it changes nothing; read by an empty one it
//     gives the same output.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ATTRIBUTE_TABLES } from "#model/tables/tables.ts";
import { attributeLookup } from "#qmgr/language/attribute-lookup.ts";
import { parseRequest } from "#qmgr/language/grammar.ts";
import { identify } from "#server/attributes/permission.ts";
import { type Prng, prng } from "#support/prng.ts";
import { babble, mutated, noise } from "./mutate.ts";
import { ALICE, checkState, printed, ROOT, type Target, target } from "./target.ts";

const LINES_PER_SEED = 500;
const SEEDS = 100;
/** PARTITA_FUZZ_FROM=1000 for seeds from there on */
const FROM = Number(process.env["PARTITA_FUZZ_FROM"] ?? 1);

const OBJECTS = [
  "server",
  "queue workq",
  "queue q1",
  "queue r1",
  "node n1",
  "node n2",
  "sched",
  "sched s1",
  "resource foo",
  "resource lic",
  "hook h",
];
const VALUES = [
  "True",
  "False",
  "t",
  "0",
  "1",
  "5",
  "-1",
  "100",
  "8gb",
  "20mb",
  "100kb",
  "1:00:00",
  "60",
  "workq",
  "q1",
  "p1",
  "p2",
  '"p1,p2"',
  "Execution",
  "Route",
  "e",
  "r",
  "alice",
  "alice@*",
  '"alice@*,bob@svr"',
  "root@svr",
  "offline",
  "free",
  "down",
  '"offline,down"',
  "[u:PBS_GENERIC=5]",
  '"[u:alice=2],[o:PBS_ALL=9]"',
  "[p:x=1]",
  "[g:users=3]",
  "long",
  "size",
  "boolean",
  "string_array",
  "float",
  "string",
  "nh",
  "q",
  "fh",
  "hm",
  '"a b"',
  "'a \"b\" c'",
  "pbs-default",
  "None",
  "default_excl",
  "/home/pbs/sched_priv",
  "/tmp/x",
  "2047",
  "SCR",
  '"-l nodes=1"',
  '"ncpus + 2 * mem"',
  "*",
  "svr",
  "+alice",
  "-bob@*.org",
  "select",
  "1:ncpus=2",
  "n1",
  "15002",
];
/** Plausible values, by type of attribute. */
const FITTING: { readonly [type: string]: readonly string[] } = {
  boolean: ["True", "False", "t", "0", "y"],
  integer: ["0", "1", "5", "100", "15002", "2047"],
  long64: ["5", "12345678", "9999999"],
  duration: ["60", "1:00:00", "00:05", "36000"],
  size: ["8gb", "20mb", "100kb", "1024", "10tw"],
  node_state: ["offline", "free"],
  string_array: ["workq", "q1", "p1", '"p1,p2"', "host", "a"],
  acl_user: ["alice", "alice@*", '"alice@*,bob@svr"', "+alice", "-bob@*.org"],
  acl_group: ["users", '"users,staff"'],
  acl_host: ["*", "svr", "*.example.org"],
  acl_manager: ["alice@*", '"alice@*,bob@svr"', "root@svr"],
  entity_limit: ["[u:PBS_GENERIC=5]", '"[u:alice=2],[o:PBS_ALL=9]"', "[p:x=1]", "[g:users=3]"],
  entity_limit_res: ["[u:PBS_GENERIC=5]", "[o:PBS_ALL=9gb]", '"[u:alice=2],[o:PBS_ALL=9]"'],
  resource_list: ["1", "5", "8gb", "20mb", "1:00:00", "x", "True"],
  keyword: ["Execution", "Route", "all", "none", "default_excl", "min_time_since_start"],
  string: ["a", '"a b"', "p1", "p2", "workq", "/tmp/x", "SCR", "'a \"b\" c'"],
  formula: ["ncpus", '"ncpus + 2 * mem"', '"sqrt(eligible_time) if fairshare_perc > .5 else -ncpus"', '"ncpus*"', "arch", "nosuch", "lic"],
  type: ["long", "size", "boolean", "string_array", "float", "string"],
  flag: ["nh", "q", "fh", "hm"],
};
const RESOURCES = ["ncpus", "mem", "walltime", "foo", "lic", "rack", "vmem", "nodect", "arch", "host", "nosuch"];

/** Meaningful lines, made anew for every seed. */
function corpusLine(random: Prng): string {
  const object = random.pick(OBJECTS);
  const verb = random.pick(["set", "set", "set", "set", "unset", "create", "delete", "list", "print", "active"]);
  const type = object.split(" ")[0] as string;
  const table = ATTRIBUTE_TABLES[type as "queue"] as (typeof ATTRIBUTE_TABLES)["queue"] | undefined;
  if (verb === "list" || verb === "print" || verb === "delete" || verb === "active" || type === "hook") return `${verb} ${object}`;
  if (verb === "create" && random.chance(0.5)) return `create ${object}`;
  const terms = Array.from({ length: random.int(1, 2) }, () => {
    const row = table === undefined ? undefined : random.pick(table.rows);
    const name = row?.name ?? random.pick(["type", "flag"]);
    const listed = row?.type === "resource_list" || row?.type === "entity_limit_res" ? `.${random.pick(RESOURCES)}` : "";
    const values = random.chance(0.7) ? (FITTING[row?.type ?? name] ?? VALUES) : VALUES;
    return verb === "unset" ? `${name}${listed}` : `${name}${listed} ${random.pick(["=", "=", "=", "+=", "-="])} ${random.pick(values)}`;
  });
  return `${random.pick([verb, verb, verb.slice(0, 1)])} ${object} ${terms.join(", ")}`;
}

const DICTIONARY: readonly string[] = [
  ...[
    "create",
    "delete",
    "set",
    "unset",
    "list",
    "print",
    "active",
    "import",
    "export",
    "help",
    "?",
    "quit",
    "exit",
    "history",
    "c",
    "d",
    "s",
    "u",
    "l",
    "p",
    "a",
  ],
  ...[
    "server",
    "queue",
    "queues",
    "node",
    "nodes",
    "resource",
    "sched",
    "hook",
    "pbshook",
    "@default",
    "@svr",
    "@nosuch",
    "workq@default",
    "a,b,c",
    "=",
    "+=",
    "-=",
    ",",
    ".",
  ],
  ...OBJECTS,
  ...VALUES,
  ...Object.values(ATTRIBUTE_TABLES).flatMap((table) => table.rows.map((row) => row.name)),
];

function line(random: Prng): string {
  const kind = random.next();
  if (kind < 0.45) return corpusLine(random);
  if (kind < 0.85) return mutated(random, corpusLine(random), DICTIONARY);
  if (kind < 0.95) return babble(random, DICTIONARY, 12);
  return noise(random, 80);
}

const START = [
  "create queue q1 queue_type=Execution",
  "create queue r1 queue_type=Route",
  "create node n1",
  "create sched s1",
  "create resource lic type=long,flag=q",
  "create resource rack type=string,flag=h",
];

async function runSeed(seed: number): Promise<{ accepted: number; changed: number }> {
  const random = prng(`qmgr ${seed}`);
  const server = await target(START);
  const counts = { accepted: 0, changed: 0 };
  for (let at = 0; at < LINES_PER_SEED; at++) {
    const text = line(random);
    const where = `seed ${seed}, line ${at}: ${JSON.stringify(text)}`;
    try {
      const parsed = parseRequest(text, attributeLookup);
      if (!parsed.ok) assert.ok(parsed.fault.exit_code >= 1 && parsed.fault.exit_code <= 4);
      const manager = random.chance(0.8);
      // Deleted objects are created again, so that there is something to set.
      if (at % 10 === 0) for (const each of START) await server.qmgr(ROOT, each);
      const before = server.written;
      const { status } = await server.qmgr(manager ? ROOT : ALICE, text);
      assert.ok(Number.isInteger(status) && status >= 0 && status <= 255, `status ${status}`);
      if (parsed.ok && /^(create|delete|set|unset)$/.test(parsed.request.verb)) {
        if (status === 0) counts.accepted++;
        // A line may have made alice a manager.
        if (!manager && identify(server.core.state, ALICE).level === "user") assert.equal(server.written, before, "a user may do this");
      }
      if (at % 25 === 0) checkState(server);
    } catch (error) {
      throw new Error(where, { cause: error });
    }
  }
  checkState(server);
  await sameAgain(server, seed);
  return counts;
}

/** Q3 */
async function sameAgain(server: Target, seed: number): Promise<void> {
  const before = await printed(server);
  const fed: string[] = [];
  for (const text of before.filter((each) => !each.startsWith("create "))) {
    const { status, text: said } = await server.qmgr(ROOT, text);
    if (status !== 0) fed.push(`${text}: ${said}`);
  }
  // Read-only values are printed for schedulers as PBS does (qmgr.md 7). 15026 is a warning. The default queue may have been deleted.
  const wrong = fed.filter((each) => !/^set sched|Error \(15026\)|^set server default_queue/.test(each));
  assert.deepEqual(wrong, [], `seed ${seed}: what was printed is refused`);
  assert.deepEqual(await printed(server), before, `seed ${seed}: fed back, it changes`);
}

for (let seed = FROM; seed < FROM + SEEDS; seed += 10) {
  test(`qmgr lines of seeds ${seed} to ${seed + 9}: no crash, no accepted nonsense`, async () => {
    let accepted = 0;
    for (let each = seed; each < seed + 10; each++) accepted += (await runSeed(each)).accepted;
    assert.ok(accepted > 300, `only ${accepted} lines were accepted`);
  });
}
