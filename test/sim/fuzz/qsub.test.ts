// 20,000 qsub argument lists and scripts with directives, mutated and random, through the command in this process into the server's core: no crash, no hang,
// no accepted nonsense.
//
// S1. Every call ends with an exit status from 0 to 255; 0 means that the job with the printed id is there, anything else that no job was made.
// S2. Every value of an accepted job is one of its type (checkState); a scheduler can take it in and run a cycle over it.

import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import type { CommandIo } from "#cli/command.ts";
import { qsub } from "#cli/commands/jobs/qsub.ts";
import type { Complex } from "#cli/complex.ts";
import type { Reply as WireReply } from "#protocol/wire/reply.ts";
import { POLICY_DEFAULT } from "#sched/shapes/policy.ts";
import { freshUniverse, startable } from "#sim/checks/mirror.ts";
import { policyBook } from "#sim/drawn/scenario.ts";
import { HOST } from "#sim/server-process.ts";
import { START_MS } from "#sim/world.ts";
import { type Prng, prng } from "#support/prng.ts";
import { babble, mutated, noise } from "./mutate.ts";
import { ALICE, checkState, type Target, target } from "./target.ts";

const CALLS_PER_SEED = 200;
const SEEDS = 100;
const FROM = Number(process.env["PARTITA_FUZZ_FROM"] ?? 1);

const OPTIONS: readonly string[] = [
  "-l select=1:ncpus=1",
  "-l select=2:ncpus=2:mem=1gb+1:ncpus=1",
  "-l place=scatter:excl",
  "-l place=pack",
  "-l nodes=2:ppn=2",
  "-l nodes=n1+n2",
  "-l walltime=1:00:00",
  "-l ncpus=4",
  "-l mem=20mb",
  "-l ncpus=2,mem=1gb",
  "-l foo=1",
  "-N name",
  "-N a.b_c-d",
  "-q workq",
  "-q q1",
  "-q r1",
  "-q workq@svr",
  "-q @svr",
  "-q nosuch",
  "-p 10",
  "-p -1024",
  "-p 2000",
  "-h",
  "-r y",
  "-r n",
  "-r x",
  "-m abe",
  "-m n",
  "-M alice@svr,bob",
  "-o /tmp/o",
  "-e svr:/tmp/e",
  "-j oe",
  "-j eo",
  "-j x",
  "-k oe",
  "-k od",
  "-A account",
  "-P project",
  "-S /bin/sh",
  "-S /bin/sh@svr,/bin/bash",
  "-u alice",
  "-u bob@svr",
  "-a 2359",
  "-a 12312359",
  "-a 202612312359.59",
  "-a nonsense",
  "-v A=1,B=2",
  "-v A='x,y'",
  "-V",
  "-z",
  "-R oe",
  "-c n",
  "-W umask=022",
  "-W depend=afterok:1",
  "-W block=true",
  "-W group_list=users",
  "-W sandbox=PRIVATE",
  "-W stagein=a@b:c",
  "-W run_count=3",
  "-W project=p",
  "-W x=y",
  "-W Priority=3",
  "-I",
  "-J 1-10",
  "-X",
  "-f",
  "-C #QQ",
  "-- /bin/true",
  "-- /bin/echo a b",
  "--",
  "--version",
  "--batch",
  "-Z",
];
const WORDS: readonly string[] = [
  ...OPTIONS.flatMap((option) => option.split(" ")),
  ..."select place nodes walltime ncpus mem vmem cput pcput nice foo host vnode arch nodect software excl shared exclhost free pack scatter vscatter group afterok block umask : + = , @ 1 2 1-10:2 20mb 1gb 00:00:01 oe n u s".split(
    " ",
  ),
];

function argv(random: Prng): string[] {
  const words = Array.from({ length: random.int(0, 4) }, () => random.pick(OPTIONS)).flatMap((option) => option.split(" "));
  const kind = random.next();
  if (kind < 0.45) return words;
  if (kind < 0.9) return words.map((word) => (random.chance(0.4) ? mutated(random, word, WORDS) : word));
  if (kind < 0.97) return babble(random, WORDS, 8).split(" ");
  return [noise(random, 20), ...words];
}

function script(random: Prng): string {
  const lines = ["#!/bin/sh"];
  for (let count = random.int(0, 4); count > 0; count--) {
    const directive = `${random.pick(["#PBS", "#PBS", "#PBS ", "#PBS\t", "#QQ", " #PBS", "#pbs", ":"])} ${random.pick(OPTIONS)}`;
    lines.push(random.chance(0.5) ? directive : mutated(random, directive, WORDS));
  }
  lines.push("echo done", ...(random.chance(0.2) ? ["#PBS -N late"] : []));
  return random.chance(0.03) ? noise(random, 200) : `${lines.join("\n")}\n`;
}

function complexOf(server: Target): Complex {
  return {
    conf: () => ({ server: HOST, home: "/nonexistent", exec: "/opt/pbs", values: {}, mode: "system", log_highres: false, pair: null }),
    connect: async () => ({
      async request(request, { onPart } = {}) {
        const { reply, items } = server.ask(ALICE, request);
        if (items.length > 0) onPart?.(items);
        if (reply === undefined) return { id: 1, ok: true, value: { exit_status: 0 } };
        return { id: 1, ...reply } as WireReply;
      },
      close() {},
    }),
    serverMeant: () => HOST,
    whose: async (name) => ([HOST, "default"].includes(name) ? "ours" : name === "far" ? "foreign" : "nobody"),
    uid: () => 1000,
    now_ms: () => START_MS,
  };
}

async function runSeed(seed: number): Promise<number> {
  const random = prng(`qsub ${seed}`);
  const server = await target([
    "create queue q1 queue_type=Execution,enabled=True,started=True",
    "create queue r1 queue_type=Route,enabled=True,started=True,route_destinations=q1",
    "create node n1",
    "create resource foo type=long,flag=nh",
  ]);
  const { core } = server;
  core.mom(
    1,
    "mom-hello",
    {
      host: "n1",
      port: 15002,
      pid: 1,
      version: "x",
      vnodes: [{ name: "n1", attrs: { resources_available: { ncpus: 4, mem: "8gb" } } }],
      jobs: [],
    },
    START_MS,
  );
  server.drain();
  const complex = complexOf(server);
  let accepted = 0;
  for (let at = 0; at < CALLS_PER_SEED; at++) {
    const words = argv(random);
    const text = script(random);
    const where = `seed ${seed}, call ${at}: ${JSON.stringify(words)} script ${JSON.stringify(text)}`;
    try {
      const before = core.state.next_seq;
      const seen = { out: "", err: "" };
      const io: CommandIo = {
        argv: words,
        env: { HOME: "/home/alice", PATH: "/bin", LOGNAME: "alice", A: "x,y" },
        cwd: "/home/alice",
        out: (piece) => void (seen.out += piece),
        err: (piece) => void (seen.err += piece),
        stdin: Readable.from([Buffer.from(text)]) as never,
        stdoutIsTty: false,
        stderrIsTty: false,
      };
      const status = await qsub(io, complex);
      assert.ok(Number.isInteger(status) && status >= 0 && status <= 255, `status ${status}`);
      const made = core.state.next_seq - before;
      if (words.includes("--batch")) continue;
      assert.equal(made, status === 0 ? 1 : 0, `status ${status} with ${made} jobs: ${seen.err}`);
      if (made === 1) {
        accepted++;
        if (seen.out !== "") assert.match(seen.out, new RegExp(`^${core.state.next_seq}(\\[\\])?\\.${HOST}\n$`));
      } else assert.notEqual(seen.err, "", `status ${status} and not a word`);
    } catch (error) {
      throw new Error(where, { cause: error });
    }
  }
  try {
    checkState(server);
    for (const sched of core.state.scheds.values()) {
      assert.equal(
        freshUniverse(core.kernel, sched, policyBook(POLICY_DEFAULT)).jobs.size,
        [...core.state.jobs.values()].filter((job) => job.attrs.queue !== "r1").length,
      );
      startable(core.kernel, sched, policyBook(POLICY_DEFAULT), START_MS / 1000);
    }
  } catch (error) {
    throw new Error(`seed ${seed}, at its end`, { cause: error });
  }
  return accepted;
}

for (let seed = FROM; seed < FROM + SEEDS; seed += 20) {
  test(`qsub calls of seeds ${seed} to ${seed + 19}: no crash, no accepted nonsense`, async () => {
    let accepted = 0;
    for (let each = seed; each < seed + 20; each++) accepted += await runSeed(each);
    assert.ok(accepted > 300, `only ${accepted} jobs were accepted`);
  });
}
