// pbsnodes against output recorded from a real PBS: formats, marks, hosts of several vnodes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { pbsnodes } from "#cli/commands/nodes/pbsnodes.ts";
import { PBSNODES_USAGE } from "#cli/pbsnodes/arguments.ts";
import type { Request, StatusItem, WireAttrs } from "#protocol/messages.ts";
import { type Answer, fakeComplex, runBody } from "./fake-complex.ts";

process.env["TZ"] = "UTC";
const CHANGED = "1795166788";

const NODE: StatusItem & { attrs: WireAttrs } = {
  id: "HOST",
  attrs: {
    Mom: "HOST",
    Port: "15002",
    pbs_version: "VERSION",
    ntype: "PBS",
    state: "free",
    pcpus: "2",
    jobs: "1.HOST/0, 1.HOST/1, 2.HOST/2, 2.HOST/3",
    resources_available: { arch: "linux", host: "HOST", mem: "32gb", ncpus: "16", vnode: "HOST" },
    resources_assigned: { accelerator_memory: "0kb", hbmem: "0kb", mem: "1048576kb", naccelerators: "0", ncpus: "4", vmem: "0kb" },
    comment: "row 3",
    resv_enable: "True",
    sharing: "default_shared",
    license: "l",
    last_state_change_time: CHANGED,
  },
};

type Marked = { readonly name: string; readonly attrs: unknown };

function nodeServer(nodes: readonly StatusItem[], marked: Marked[] = []): (request: Request) => Answer {
  return (request) => {
    if (request.kind === "manager") {
      marked.push({ name: request.name, attrs: request.attrs });
      return {};
    }
    if (request.kind !== "status") return { code: 15005, text: "Unknown request" };
    if (request.object === "job") return { items: request.ids.map((id) => ({ id, attrs: { job_state: id === "9.HOST" ? "S" : "R" } })) };
    if (request.object === "resource") return { items: [{ id: "lic", attrs: { type: "long", flag: "hn" } }] };
    if (nodes.length === 0) return { code: 15064, text: "Server has no node list" };
    if (request.ids.length === 0) return { items: nodes };
    return { items: request.ids.map((id) => nodes.find((node) => node.id === id) ?? { id, code: 15062, text: "Unknown node " }) };
  };
}

async function run(words: readonly string[], nodes: readonly StatusItem[] = [NODE], marked?: Marked[]) {
  const { complex, requests } = fakeComplex({ answer: nodeServer(nodes, marked), now_ms: 1_795_166_790_000 });
  return { ...(await runBody(pbsnodes, words, complex)), requests };
}

const LONG = `HOST
     Mom = HOST
     Port = 15002
     pbs_version = VERSION
     ntype = PBS
     state = free
     pcpus = 2
     jobs = 1.HOST/0, 1.HOST/1, 2.HOST/2, 2.HOST/3
     resources_available.arch = linux
     resources_available.host = HOST
     resources_available.mem = 32gb
     resources_available.ncpus = 16
     resources_available.vnode = HOST
     resources_assigned.accelerator_memory = 0kb
     resources_assigned.hbmem = 0kb
     resources_assigned.mem = 1048576kb
     resources_assigned.naccelerators = 0
     resources_assigned.ncpus = 4
     resources_assigned.vmem = 0kb
     comment = row 3
     resv_enable = True
     sharing = default_shared
     license = l
     last_state_change_time = Fri Nov 20 09:26:28 2026

`;
const SUMMARY = `vnode           state           OS       hardware host            queue        mem     ncpus   nmics   ngpus  comment
--------------- --------------- -------- -------- --------------- ---------- -------- ------- ------- ------- ---------
HOST            free            --       --       HOST            --             32gb      16       0       0 row 3
`;
const JOBS = `                                                        mem       ncpus   nmics   ngpus
vnode           state           njobs   run   susp      f/t        f/t     f/t     f/t   jobs
--------------- --------------- ------ ----- ------ ------------ ------- ------- ------- -------
HOST            free                 2     2      0    31gb/32gb   12/16     0/0     0/0 1,2
`;
const DSV =
  "Name=HOST|Mom=HOST|Port=15002|pbs_version=VERSION|ntype=PBS|state=free|pcpus=2|jobs=1.HOST/0,1.HOST/1,2.HOST/2,2.HOST/3|" +
  "resources_available.arch=linux|resources_available.host=HOST|resources_available.mem=32gb|resources_available.ncpus=16|" +
  "resources_available.vnode=HOST|resources_assigned.accelerator_memory=0kb|resources_assigned.hbmem=0kb|resources_assigned.mem=1048576kb|" +
  "resources_assigned.naccelerators=0|resources_assigned.ncpus=4|resources_assigned.vmem=0kb|comment=row 3|resv_enable=True|" +
  "sharing=default_shared|license=l|last_state_change_time=Fri Nov 20 09:26:28 2026\n";
const PROLOGUE = `{
	"timestamp":	1795166790,
	"pbs_version":	"23.06.06",
	"pbs_server":	"HOST",
	"nodes":	{
`;

// biome-ignore format: one row a case
const OUTPUTS: readonly (readonly [words: string, text: string, status: number])[] = [
  ["-a",            LONG, 0],
  ["HOST",          LONG, 0],
  ["-v HOST",       LONG, 0],
  ["-av",           LONG, 0],
  ["-H HOST",       LONG, 0],
  ["-aS",           SUMMARY, 0],
  ["-aSL",          SUMMARY, 0],
  ["-HS HOST",      SUMMARY, 0],
  ["-aSj",          JOBS, 0],
  ["-aSjL",         JOBS, 0],
  ["-a -F dsv",     DSV, 0],
  ["-a -F dsv -D ;", DSV.replaceAll("|", ";"), 0],
  ["-aS -F dsv",    "vnode=HOST|state=free|OS=--|hardware=--|host=HOST|queue=--|mem=32gb|ncpus=16|nmics=0|ngpus=0|comment=row 3\n", 0],
  ["-aSj -F dsv",   "vnode=HOST|state=free|njobs=2|run=2|susp=0|mem(f/t)=31gb/32gb|ncpus(f/t)=12/16|nmics(f/t)=0/0|ngpus(f/t)=0/0|jobs=1.HOST,2.HOST\n", 0],
  ["nosuch",        "Node: nosuch,  Error: Unknown node \n", 1],
  ["-v nosuch HOST", `Node: nosuch,  Error: Unknown node \n${LONG}`, 1],
  ["-F json nosuch", `${PROLOGUE}\t\t"nosuch":\t{\n\t\t\t"nosuch":\t"Unknown node "\n\t\t}\n\t}\n}\n`, 0],
  ["-l",            "", 0],
  ["",              PBSNODES_USAGE, 1],
  ["-o",            PBSNODES_USAGE, 1],
  ["-a -F xml",     PBSNODES_USAGE, 1],
  ["-aj",           PBSNODES_USAGE, 1],
  ["-k",            `pbsnodes: invalid option -- 'k'\n${PBSNODES_USAGE}`, 1],
  ["-s nowhere -a", "Unknown Host.\npbsnodes: cannot connect to server nowhere, error=15008\n", 1],
];

for (const [words, text, status] of OUTPUTS) {
  test(`pbsnodes ${words}`, async () => {
    const ran = await run(words.split(" ").filter(Boolean));
    assert.equal(ran.text, text);
    assert.equal(ran.status, status);
  });
}

test("pbsnodes -a -F json, as recorded", async () => {
  const ran = await run(["-a", "-F", "json"]);
  assert.equal(
    ran.text,
    `${PROLOGUE}		"HOST":	{
			"Mom":	"HOST",
			"Port":	15002,
			"pbs_version":	"VERSION",
			"ntype":	"PBS",
			"state":	"free",
			"pcpus":	2,
			"jobs":	["1.HOST", "2.HOST"],
			"resources_available":	{
				"arch":	"linux",
				"host":	"HOST",
				"mem":	"32gb",
				"ncpus":	16,
				"vnode":	"HOST"
			},
			"resources_assigned":	{
				"mem":	"1048576kb",
				"ncpus":	4
			},
			"comment":	"row 3",
			"resv_enable":	"True",
			"sharing":	"default_shared",
			"license":	"l",
			"last_state_change_time":	1795166788
		}
	}
}
`,
  );
});

test("pbsnodes -aSj -F json, as recorded", async () => {
  const ran = await run(["-aSj", "-Fjson"]);
  assert.equal(
    ran.text,
    `${PROLOGUE}		"HOST":	{
			"State":	"free",
			"Total Jobs":	2,
			"Running Jobs":	2,
			"Suspended Jobs":	0,
			"mem f/t":	"31gb/32gb",
			"ncpus f/t":	"12/16",
			"nmics f/t":	"0/0",
			"ngpus f/t":	"0/0",
			"jobs":	["1.HOST", "2.HOST"]
		}
	}
}
`,
  );
  const summary = JSON.parse((await run(["-aS", "-Fjson"])).text);
  assert.deepEqual(Object.keys(summary.nodes.HOST), [
    "State",
    "OS",
    "hardware",
    "host",
    "queue",
    "Memory",
    "ncpus",
    "nmics",
    "ngpus",
    "comment",
  ]);
});

const vnode = (id: string, more: Partial<Record<string, string>>, assigned: string, cpus = "4"): StatusItem => ({
  id,
  attrs: {
    Mom: "h1",
    ntype: "PBS",
    state: "free",
    ...more,
    resources_available: { host: "h1", mem: "1000kb", ncpus: cpus, vnode: id, lic: "2", color: id === "h1[0]" ? "red" : "blue" },
    resources_assigned: { mem: "0kb", ncpus: assigned },
  } as WireAttrs,
});
const VNODES = [
  vnode("h1[0]", { jobs: "1.HOST/0" }, "1"),
  vnode("h1[1]", { jobs: "1.HOST/1, 9.HOST/2", state: "offline,job-busy", comment: "fan" }, "2"),
];

test("a host of several vnodes is one record, -v and -av list the vnodes", async () => {
  const ran = await run(["h1"], VNODES);
  assert.equal(
    ran.text,
    `h1
     Mom = h1
     ntype = PBS
     state = <various>
     jobs = 1.HOST/0, 1.HOST/1, 9.HOST/2
     resources_available.host = h1
     resources_available.mem = 2000kb
     resources_available.ncpus = 8
     resources_available.vnode = <various>
     resources_available.lic = 4
     resources_available.color = <various>
     resources_assigned.mem = 0kb
     resources_assigned.ncpus = 3
     comment = fan

`,
  );
  assert.deepEqual((await run(["-av"], VNODES)).out.match(/^h1.*$/gm), ["h1[0]", "h1[1]"]);
  assert.equal((await run(["h1[0]"], VNODES)).err, "Node: h1[0],  Error: Unknown node \n");
});

test("the summaries cut the state to its first word unless -L is given, and count suspended jobs", async () => {
  const cut = (await run(["-avSj"], VNODES)).out.split("\n")[4];
  assert.equal(cut, "h1[1]           offline              2     1      1      1mb/1mb     2/4     0/0     0/0 1,9");
  assert.match((await run(["-avSL"], VNODES)).out, /^h1\[1\] +offline,job-busy /m);
});

test("marks: every vnode of a host, comments, unknown names, a list of what is marked", async () => {
  const marked: Marked[] = [];
  await run(["-o", "-C", "fan broken, ticket 12", "h1"], VNODES, marked);
  const attrs = [
    { name: "state", op: "+=", value: "offline" },
    { name: "comment", op: "=", value: "fan broken, ticket 12" },
  ];
  assert.deepEqual(marked, [
    { name: "h1[0]", attrs },
    { name: "h1[1]", attrs },
  ]);
  marked.length = 0;
  await run(["-r", "-C", "", "HOST"], [NODE], marked);
  assert.deepEqual(marked, [
    {
      name: "HOST",
      attrs: [
        { name: "state", op: "-=", value: "offline" },
        { name: "comment", op: "=", value: "" },
      ],
    },
  ]);
  const ran = await run(["-r", "HOST", "nosuch"]);
  assert.deepEqual([ran.text, ran.status], ["Error marking node nosuch - Unknown node \n", 1]);
  assert.equal((await run(["-l"], VNODES)).text, "h1[1]                offline,job-busy fan\n");
});

test("a mark the server refuses, and a server without nodes", async () => {
  const { complex } = fakeComplex({
    answer: (request) => (request.kind === "manager" ? { code: 15007, text: "Unauthorized Request " } : { items: [NODE] }),
  });
  const ran = await runBody(pbsnodes, ["-o", "HOST"], complex);
  assert.deepEqual([ran.text, ran.status], ["Error marking node HOST - Unauthorized Request \n", 1]);
  const none = await run(["-a"], []);
  assert.deepEqual([none.text, none.status], ["pbsnodes: Server has no node list\n", 1]);
});

// biome-ignore format: one row a case
const MEMORY: readonly (readonly [total: string, assigned: string, shown: string])[] = [
  ["32gb",       "200mb",      "32gb/32gb"],
  ["32gb",       "600mb",      "31gb/32gb"],
  ["64gb",       "33000mb",    "32gb/64gb"],
  ["24684092kb", "2048000kb",  "22gb/24gb"],
  ["3000mb",     "2048000kb",  "1gb/3gb"],
  ["1500mb",     "0kb",        "1gb/1gb"],
  ["900kb",      "400kb",      "500kb/900kb"],
  ["1gb",        "2gb",        "0gb/1gb"],
];
for (const [total, assigned, shown] of MEMORY)
  test(`pbsnodes -Sj: of ${total} with ${assigned} assigned ${shown} are shown, rounded to the nearest at every step`, async () => {
    const node = { id: "n", attrs: { resources_available: { mem: total, ncpus: "1" }, resources_assigned: { mem: assigned, ncpus: "0" } } };
    assert.match((await run(["-aSj"], [node])).out, new RegExp(` ${shown} `));
  });

test("pbsnodes of a complex without nodes says so of each name", async () => {
  for (const words of [["n1"], ["-v", "n1"]]) {
    const ran = await run(words, []);
    assert.deepEqual([ran.text, ran.status], ["Node: n1,  Error: Server has no node list\n", 1]);
  }
});
