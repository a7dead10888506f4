// Random and mutated command lines: every command ends with an exit status, and every request of qsub is well formed. A failure
// prints its seed.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { qalter } from "#cli/commands/jobs/qalter.ts";
import { qdel } from "#cli/commands/jobs/qdel.ts";
import { qselect } from "#cli/commands/jobs/qselect.ts";
import { qsub } from "#cli/commands/jobs/qsub.ts";
import { pbsnodes } from "#cli/commands/nodes/pbsnodes.ts";
import { qstat } from "#cli/commands/status/qstat.ts";
import { splitVariables } from "#cli/long-format.ts";
import { namedVariables } from "#cli/qsub/variables.ts";
import { splitWords } from "#model/values/words.ts";
import type { QueueJobRequest, Request } from "#protocol/messages.ts";
import { type Answer, fakeComplex, runBody } from "./fake-complex.ts";

/** PARTITA_FUZZ_RUNS=100000 for a long search */
const RUNS = Number(process.env["PARTITA_FUZZ_RUNS"] ?? 600);

const WORDS = [
  "-a",
  "-A",
  "-c",
  "-C",
  "-e",
  "-f",
  "-h",
  "-I",
  "-j",
  "-J",
  "-k",
  "-l",
  "-m",
  "-M",
  "-N",
  "-o",
  "-p",
  "-P",
  "-q",
  "-r",
  "-R",
  "-S",
  "-u",
  "-v",
  "-V",
  "-W",
  "-z",
  "--",
  "-",
  "-x",
  "-F",
  "json",
  "dsv",
  "-D",
  "-E",
  "-H",
  "-t",
  "-T",
  "-G",
  "-Q",
  "-B",
  "-1",
  "-s",
  "-aSj",
  "select=1:ncpus=2",
  "place=free:excl",
  "walltime=1:2:3",
  "depend=afterok:1:2,after:3",
  "umask=027,group_list=a,b",
  "stagein=a@h:/x",
  "1-3:2%2",
  "12",
  "12.HOST",
  "12[].HOST",
  "12[1-3]",
  "99999",
  "workq",
  "q@HOST",
  "A=1,B='x,y'",
  "y",
  "n",
  "oe",
  "1400",
  "202611201400.30",
  ".gt.5",
  "/bin/true",
  "",
  " ",
  "=",
  ",",
  "\\",
  '"',
  "'",
  "@",
  ":",
  "\u0000",
  "ä",
  "\ud800",
];
const word = fc.oneof(
  fc.constantFrom(...WORDS),
  fc.tuple(fc.constantFrom(...WORDS), fc.constantFrom(...WORDS)).map(([a, b]) => a + b),
  fc.string({ maxLength: 12 }),
  fc.string({ unit: "binary", maxLength: 6 }),
);
const line = fc.array(word, { maxLength: 8 });

function answer(request: Request): Answer {
  if (request.kind === "queue-job") return { value: { id: "1.HOST" } };
  if (request.kind === "queue-jobs") return { value: { results: request.jobs.map(() => ({ id: "1.HOST" })) } };
  if (request.kind === "select-jobs") return { value: [] };
  if (request.kind === "status") return { items: request.ids.map((id) => ({ id, code: 15001, text: "Unknown Job Id" })) };
  return {};
}

for (const [name, body] of Object.entries({ qsub, qstat, qalter, qselect, qdel, pbsnodes })) {
  test(`random command lines of ${name} end with a status`, async () => {
    await fc.assert(
      fc.asyncProperty(line, async (argv) => {
        const { complex, requests } = fakeComplex({ answer });
        const ran = await runBody(body, argv.includes("--batch") ? [] : argv, complex, {
          env: { HOME: "/", LOGNAME: "u" },
          cwd: "/nonexistent",
          stdin: "date\n",
        });
        assert.ok(Number.isInteger(ran.status) && ran.status >= 0 && ran.status <= 255, `status ${ran.status}`);
        if (ran.status !== 0) assert.notEqual(ran.err, "", "a failure says why");
        for (const request of requests) if (request.kind === "queue-job") mustBeWellFormed(request);
      }),
      { numRuns: RUNS },
    );
  });
}

function mustBeWellFormed(request: QueueJobRequest): void {
  const keys = request.attrs.map(({ name, resource }) => `${name}.${resource ?? ""}`);
  assert.equal(new Set(keys).size, keys.length, "an attribute is sent once");
  assert.ok(request.attrs.every(({ name, value }) => name !== "" && typeof value === "string"));
  assert.ok(request.destination.length <= 15);
}

test("random batches end with a status and answer every line", async () => {
  const batchLine = fc.oneof(
    fc.array(word, { maxLength: 5 }).map((words) => words.join(" ")),
    fc.json({ maxDepth: 2 }),
    fc.constant("-N a -- /bin/true"),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(batchLine, { maxLength: 6 }), async (lines) => {
      const { complex } = fakeComplex({ answer });
      const stdin = lines.map((each) => each.replaceAll("\n", " ")).join("\n");
      const ran = await runBody(qsub, ["--batch", "-"], complex, { env: { HOME: "/", LOGNAME: "u" }, cwd: "/nonexistent", stdin });
      assert.ok(Number.isInteger(ran.status) && ran.status >= 0 && ran.status <= 255);
      const meant = Buffer.from(stdin)
        .toString("utf8")
        .split("\n")
        .map((each) => each.trim())
        .filter((each) => each !== "" && !each.startsWith("#"));
      const told = new Set([...ran.err.matchAll(/^qsub: line (\d+): /gm)].map((match) => match[1]));
      assert.equal((ran.out.match(/^1\.HOST$/gm) ?? []).length + told.size, meant.length);
    }),
    { numRuns: RUNS / 2 },
  );
});

test("variables come through qsub's escapes and qstat's unescaping unchanged", () => {
  const name = fc.stringMatching(/^[A-Z_][A-Z0-9_]{0,5}$/);
  fc.assert(
    fc.property(
      fc.dictionary(
        name,
        fc.string({ maxLength: 10 }).map((text) => text.trim()),
        { minKeys: 1, maxKeys: 5, noNullPrototype: true },
      ),
      (env) => {
        const list = namedVariables(Object.keys(env).join(","), env);
        assert.ok(list !== null);
        assert.deepEqual(
          splitVariables(list.join(",")),
          Object.entries(env).map(([key, value]) => `${key}=${value}`),
        );
      },
    ),
  );
});

test("words that are quoted come back as they were", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.string({ maxLength: 8 }).filter((text) => !text.includes("'")),
        { maxLength: 5 },
      ),
      (words) => {
        assert.deepEqual(splitWords(words.map((text) => `'${text}'`).join(" ")), words);
      },
    ),
  );
});
