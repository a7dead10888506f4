// pbs_rsub, pbs_rstat, pbs_rdel, pbs_ralter: requests sent, output, refusals printed, usage.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { CommandBody } from "#cli/complex.ts";
import type { AttrValueText, Request, StatusItem } from "#protocol/messages.ts";
import { pbsRalter } from "#rsub/pbs_ralter.ts";
import { pbsRdel } from "#rsub/pbs_rdel.ts";
import { pbsRstat } from "#rsub/pbs_rstat.ts";
import { pbsRsub, run as rsubCommand } from "#rsub/pbs_rsub.ts";
import { shortTime } from "#rsub/resv-times.ts";
import { type Answer, fakeComplex, runBody, runCommand } from "../cli/fake-complex.ts";

process.env["TZ"] = "UTC";

/** Friday, 20 November 2026, 09:26:28 UTC */
const NOW_S = 1_795_166_788;
const BODIES: Readonly<Record<string, CommandBody>> = {
  pbs_rsub: pbsRsub,
  pbs_rstat: pbsRstat,
  pbs_rdel: pbsRdel,
  pbs_ralter: pbsRalter,
};

/** Reservations R5 and others exist; R9 is unknown; R7 belongs to another user. */
function answering(request: Request): Answer {
  if (request.kind === "submit-resv") return { value: { id: "R5.HOST", word: "UNCONFIRMED" } };
  const resv = "resv" in request ? request.resv : "";
  if (/^[RSM]?9\./.test(resv) || /^\d+\./.test(resv)) return { code: 15084, text: "Unknown Reservation Id" };
  if (resv.startsWith("R7.")) return { code: 15007, text: "Unauthorized Request " };
  if (request.kind === "modify-resv") return { value: { id: resv, word: "ALTER REQUESTED" } };
  return request.kind === "status" && request.object === "resv"
    ? { items: ITEMS.filter(({ id }) => request.ids.length === 0 || request.ids.includes(id)) }
    : {};
}

const ITEMS: readonly StatusItem[] = [
  {
    id: "R5.HOST",
    attrs: {
      Reserve_Name: "talk",
      Reserve_Owner: "alice@HOST",
      reserve_state: "2",
      reserve_substate: "2",
      reserve_start: String(NOW_S + 3600),
      reserve_end: String(NOW_S + 7200),
      reserve_duration: "01:00:00",
      queue: "R5",
      Resource_List: { ncpus: "4", nodect: "1", select: "1:ncpus=4", place: "free", walltime: "01:00:00" },
      resv_nodes: "(HOST:ncpus=4)",
      Authorized_Users: "alice@HOST,bob",
      reserve_standing: "1",
      reserve_execvnodes: "1#(HOST:ncpus=4){0}",
      reserve_timezone: "UTC",
      ctime: String(NOW_S),
    },
  },
];

type Ran = { readonly text: string; readonly status: number; readonly requests: readonly Request[] };

async function run(line: string | readonly string[], env: Record<string, string> = {}): Promise<Ran> {
  const [command = "", ...words] = typeof line === "string" ? line.split(" ") : line;
  const fake = fakeComplex({ answer: answering, now_ms: NOW_S * 1000 });
  const { text, status } = await runBody(BODIES[command] as CommandBody, words, fake.complex, { env });
  return { text, status, requests: fake.requests };
}

/** Attributes of the one request that was sent, as `name.resource=value`. */
function sent({ requests }: Ran): string[] {
  const [request] = requests.filter(({ kind }) => kind !== "status");
  const attrs = request !== undefined && "attrs" in request ? (request.attrs as readonly AttrValueText[]) : [];
  return attrs
    .filter(({ name }) => name !== "Variable_List")
    .map(({ name, resource, value }) => `${name}${resource === undefined ? "" : `.${resource}`}=${value}`);
}

test("pbs_rsub: options as attributes", async () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [words: string, ...attrs: string[]])[] = [
    ["-R 202611201500 -D 3600",              "reserve_start=1795186800", "Resource_List.walltime=3600"],
    ["-R 1500 -E 1600.30",                   "reserve_start=1795186800", "reserve_end=1795190430"],
    ["-R 0900",                              "reserve_start=1795251600"],
    ["-l select=1:ncpus=4,place=excl",       "Resource_List.select=1:ncpus=4", "Resource_List.place=excl"],
    ["-lncpus=2 -lmem=1gb",                  "Resource_List.ncpus=2", "Resource_List.mem=1gb"],
    ["-I -20 -N talk -m abce -M a,b@c",      "interactive=-20", "Reserve_Name=talk", "Mail_Points=abce", "Mail_Users=a,b@c"],
    ["-U a,-b -G staff,+wheel -H *.x.org",   "Authorized_Users=a,-b", "Authorized_Groups=staff,+wheel", "Authorized_Hosts=*.x.org"],
    ["-u a -g users -q @HOST",               "User_List=a", "group_list=users"],
    ["-p p1 -D 60",                          "partition=p1", "Resource_List.walltime=60"],
    ["-W delete_idle_time=00:10:00",         "delete_idle_time=00:10:00"],
    ["-W qmove=12",                          "qmove=12", "interactive=-10"],
    ["-W qmove=12 -I -300",                  "qmove=12", "interactive=-300"],
    ["--job 12",                             "reserve_job=12"],
    ["--job=12",                             "reserve_job=12"],
  ];
  for (const [words, ...attrs] of rows) assert.deepEqual(sent(await run(`pbs_rsub ${words}`)), attrs, words);
});

test("pbs_rsub: what came of it; hosts; the environment that goes along", async () => {
  assert.deepEqual((await run("pbs_rsub -R 1500 -D 60")).text, "R5.HOST UNCONFIRMED\n");
  const hosts = await run("pbs_rsub --hosts n1 n2 -R 1500 -D 60");
  assert.deepEqual((hosts.requests[0] as { readonly hosts?: unknown }).hosts, ["n1", "n2"]);
  const { complex } = fakeComplex({ answer: () => ({ code: 15062, text: "Host with resources not found: n9" }) });
  const unknown = await runBody(pbsRsub, ["--hosts", "n9", "-R", "1500", "-D", "60"], complex);
  assert.deepEqual([unknown.text, unknown.status], ["pbs_rsub: Host with resources not found: n9\n", 2]);
  const rule = await run("pbs_rsub -R 1500 -D 60 -r FREQ=DAILY;COUNT=2", { PBS_TZID: "UTC", MAIL: "/m" });
  assert.deepEqual(sent(rule).slice(2), ["reserve_rrule=FREQ=DAILY;COUNT=2", "reserve_timezone=UTC"]);
  const [request] = rule.requests;
  assert.equal(
    request?.kind === "submit-resv" && request.attrs.find(({ name }) => name === "Variable_List")?.value,
    "PBS_O_MAIL=/m,PBS_TZID=UTC",
  );
});

test("pbs_rsub: mistakes are told before anything is sent", async () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [words: string, line: string])[] = [
    ["-R banana -D 60",                "pbs_rsub: illegal -R time value"],
    ["-R 1500 -D 60 -I x",             "pbs_rsub: illegal -I time value"],
    ["-R 1500 -D 60 -I 0",             "pbs_rsub: illegal -I time value"],
    ["-R 1500 -D 60 -q nosuch",        'pbs_rsub: illegal -q value: format "@server"'],
    ["-R 1500 -D 60 -l 4=5",           "pbs_rsub: illegal -l value"],
    ["-R 1500 -D 60 -m z",             "pbs_rsub: illegal -m value"],
    [`-R 1500 -D 60 -r ${"F".repeat(67)}`, "pbs_rsub: illegal -r value (expression too long)"],
    ["-W qmove=12 -R 1500",            "pbs_rsub: -Wqmove is not compatible with -R or -E option"],
    ["-W qmove=12 -I 20",              "pbs_rsub: -I <timeout> value must be negative when used with -Wqmove option."],
    ["--job 12 -R 1500",               "pbs_rsub: Start/End time cannot be used with --job option"],
    ["--hosts",                        "pbs_rsub: missing host(s)"],
    ["--hosts  -R 1500 -D 60",         "pbs_rsub: missing host(s)"],
    ["--hosts n1 n1 -R 1500 -D 60",    "pbs_rsub: Duplicate host: n1"],
    ["--hosts n1 -I 5",                "pbs_rsub: can't use -I with --hosts"],
    ["--hosts n1 -l ncpus=1",          "pbs_rsub: can't use -l with --hosts"],
    ["-x",                             "pbs_rsub: invalid option -- 'x'"],
    ["-R",                             "pbs_rsub: option requires an argument -- 'R'"],
    ["-D 60 operand",                  "usage: pbs_rsub [-I seconds] [-m mail_points] [-M mail_list]"],
  ];
  for (const [words, line] of rows) {
    const ran = await run(["pbs_rsub", ...words.split(" ")]);
    assert.deepEqual([ran.text.split("\n")[0], ran.status, ran.requests.length], [line, 2, 0], words);
    assert.match(ran.text, /usage: pbs_rsub \[-I seconds\][\s\S]*pbs_rsub --version\n$/, words);
  }
  assert.match((await run(["pbs_rsub"])).text, /^usage: pbs_rsub/);
  const zone = await run("pbs_rsub -R 1500 -D 60 -r FREQ=DAILY;COUNT=2");
  assert.deepEqual([zone.text, zone.status], ["pbs_rsub error: a valid PBS_TZID timezone environment variable is required.\n", 2]);
  assert.match((await runCommand(rsubCommand, ["--version"])).out, /^pbs_version = /);
});

test("pbs_rstat: the table, ids, everything, JSON and dsv", async () => {
  assert.equal(
    (await run(["pbs_rstat"])).text,
    "Resv ID    Queue    User     State             Start / Duration / End              \n" +
      `${"-".repeat(69)}\n` +
      "R5.HOST    R5       alice@HO CO          Today 10:26 / 3600 / Today 11:26      \n",
  );
  assert.equal((await run("pbs_rstat -B")).text, "Resv ID: R5.HOST\n");
  const full = (await run("pbs_rstat -f R5.HOST")).text;
  assert.match(full, /^Resv ID: R5\.HOST\nReserve_Name = talk\n/);
  assert.match(full, /reserve_state = RESV_CONFIRMED\n[\s\S]*reserve_start = Fri Nov 20 10:26:28 2026\n[\s\S]*reserve_duration = 3600\n/);
  assert.match(full, /Resource_List\.select = 1:ncpus=4\nResource_List\.place = free\n/);
  assert.doesNotMatch(full, /reserve_(execvnodes|standing|timezone)/);
  assert.equal((await run("pbs_rstat -F R5.HOST")).text, full);
  const json = JSON.parse((await run("pbs_rstat -F json")).text);
  assert.deepEqual([json.resvs["R5.HOST"].reserve_state, json.resvs["R5.HOST"].Resource_List.ncpus], ["RESV_CONFIRMED", 4]);
  assert.match((await run("pbs_rstat -F dsv R5.HOST")).text, /^Resv ID: R5\.HOST\|Reserve_Name=talk\|/);
  assert.deepEqual((({ text, status }) => [text, status])(await run("pbs_rstat -x")), [
    "pbs_rstat: invalid option -- 'x'\nUsage:\n\tpbs_rstat [-fFBS] [reservation-id]\n\tpbs_rstat --version\n",
    1,
  ]);
});

test("pbs_rstat: an unknown one is told and is no failure; none is no output", async () => {
  const fake = fakeComplex({ answer: (request): Answer => (request.kind === "status" && request.object === "resv" ? { items: [] } : {}) });
  assert.deepEqual((({ text, status }) => [text, status])(await runBody(pbsRstat, [], fake.complex)), ["", 0]);
  const unknown = fakeComplex({ answer: () => ({ items: [{ id: "R9.HOST", code: 15084, text: "Unknown Reservation Id" }] }) });
  assert.deepEqual((({ text, status }) => [text, status])(await runBody(pbsRstat, ["-f", "R9"], unknown.complex)), [
    "pbs_rstat: Unknown Reservation Id\n",
    0,
  ]);
});

test("times of the table are as short as they can be", () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [shift_s: number, text: string])[] = [
    [0, "Today 09:26"], [-86_400, "Thu 09:26"], [86_400, "Sat 09:26"], [2 * 86_400, "Sun Nov 22 09:26"], [-6 * 86_400, "Sat Nov 14 09:26"],
    [7 * 86_400, "Fri Nov 27 09:26"], [60 * 86_400, "Tue Jan 19 2027 09:26"],
  ];
  for (const [shift_s, text] of rows) assert.equal(shortTime(NOW_S + shift_s, NOW_S * 1000), text);
});

test("-q names the server that is asked", async () => {
  for (const line of ["pbs_rsub -R 1500 -D 60 -q @nowhere", "pbs_rdel -q @nowhere R5", "pbs_rdel -q workq@nowhere R5"]) {
    await assert.rejects(run(line), { name: "ServerUnreachable", line: "Unknown Host." }, line);
  }
  assert.equal((await run("pbs_rsub -R 1500 -D 60 -q @HOST")).text, "R5.HOST UNCONFIRMED\n");
  assert.equal((await run("pbs_rdel -q @HOST R5")).text, "");
});

test("pbs_rdel: every id is tried, the last failure counts", async () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [words: string, text: string, status: number, sent: readonly string[]])[] = [
    ["R5",          "",                                                            0,   ["R5.HOST"]],
    ["S6.other M7", "",                                                            0,   ["S6.other", "M7.HOST"]],
    ["R9 R5",       "pbs_rdel: Unknown Reservation Id R9.HOST\n",                  236, ["R9.HOST", "R5.HOST"]],
    ["R7",          "pbs_rdel: Unauthorized Request  R7.HOST\n",                   159, ["R7.HOST"]],
    ["12345",       "pbs_rdel: Unknown Reservation Id 12345.HOST\n",               236, ["12345.HOST"]],
    ["xyz R5",      "pbs_rdel: illegally formed reservation identifier: xyz\n",    2,   ["R5.HOST"]],
    ["R9 xyz",      "pbs_rdel: Unknown Reservation Id R9.HOST\npbs_rdel: illegally formed reservation identifier: xyz\n", 2, ["R9.HOST"]],
    ["R5@nowhere R9@HOST", "Unknown Host.\npbs_rdel: cannot connect to server HOST (errno=15008)\npbs_rdel: Unknown Reservation Id R9.HOST\n", 236, ["R9.HOST"]],
  ];
  for (const [words, text, status, ids] of rows) {
    const ran = await run(`pbs_rdel ${words}`);
    assert.deepEqual([ran.text, ran.status, ran.requests.map((request) => "resv" in request && request.resv)], [text, status, ids], words);
  }
  assert.deepEqual((({ text, status }) => [text, status])(await run(["pbs_rdel"])), [
    "usage:\tpbs_rdel [-q dest] resv_identifier...\n\tpbs_rdel --version\n",
    2,
  ]);
});

test("pbs_ralter: options as attributes, what came of it, what is wrong", async () => {
  const ran = await run("pbs_ralter -D 5400 -R 1500 -l select=1:ncpus=2 -N x -I 30 R5");
  assert.equal(ran.text, "pbs_ralter: R5.HOST ALTER REQUESTED\n");
  assert.deepEqual(sent(ran), [
    "reserve_duration=5400",
    "reserve_start=1795186800",
    "Resource_List.select=1:ncpus=2",
    "Reserve_Name=x",
    "interactive=30",
  ]);
  assert.equal(((await run("pbs_ralter -D 60 -W force R5")).requests[0] as { readonly force?: boolean }).force, true);
  // biome-ignore format: a table
  const rows: readonly (readonly [words: string, line: string, status: number])[] = [
    ["-l ncpus=2 R5",    "pbs_ralter -l only allows for select",                              2],
    ["-R banana R5",     "pbs_ralter: illegal -R time value",                                 2],
    ["-W other R5",      "pbs_ralter: illegal -W value",                                      2],
    ["-D 60",            "usage: pbs_ralter [-I seconds] [-m mail_points] [-M mail_list]",    2],
    ["-D 60 R5 R6",      "usage: pbs_ralter [-I seconds] [-m mail_points] [-M mail_list]",    2],
    ["-D 60 xyz",        "pbs_ralter: illegally formed reservation identifier: xyz",          2],
    ["-D 60 R9",         "pbs_ralter: Unknown Reservation Id",                                236],
    ["-D 60 R7",         "pbs_ralter: Unauthorized Request ",                                 159],
  ];
  for (const [words, line, status] of rows) {
    const wrong = await run(`pbs_ralter ${words}`);
    assert.deepEqual([wrong.text.split("\n")[0], wrong.status], [line, status], words);
  }
});
