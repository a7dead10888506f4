// Real client programs of PBS, run against Partita. Their acceptance runs are in the shared folder (docs/reference/clients.md
// lists what the programs rely on). The programs are Debian packages (scripts/test-host.sh installs them). Each runs as an
// ordinary user: in user mode, and as another user of a system-mode complex.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { becoming, type Complex, startComplex } from "../live/complex.ts";
import { SHARED, whyNoShared } from "../live/shared.ts";

const CLIENTS = [
  { name: "snakemake", needs: "/usr/bin/snakemake", run: ["/usr/bin/python3", "accept.py"] },
  { name: "ipyparallel", needs: "/usr/lib/python3/dist-packages/ipyparallel", run: ["/usr/bin/python3", "accept.py"] },
  { name: "batchtools", needs: "/usr/lib/R/site-library/batchtools", run: ["/usr/bin/Rscript", "accept.R"] },
] as const;
const CLIENT_MS_MAX = 600_000;

/** user: the user who runs the client; only root can switch to another user. */
type Place = { readonly mode: "user" | "system"; readonly owner?: string; readonly user?: string };
const isRoot = process.geteuid?.() === 0;
const PLACES: readonly Place[] = isRoot
  ? [
      { mode: "user", owner: "pbsuser1", user: "pbsuser1" },
      { mode: "system", user: "pbsuser2" },
    ]
  : [{ mode: "user" }];

for (const client of CLIENTS) {
  for (const place of PLACES) {
    const skip = whyNoShared() ?? whyNoClient(client.needs) ?? whyNoUser(place.user) ?? false;
    test(`${client.name} in ${place.mode} mode`, { skip }, async () => {
      const complex = await startComplex({ mode: place.mode, ...(place.owner === undefined ? {} : { owner: place.owner }) });
      try {
        const { status, output } = runClient(complex, client, place);
        assert.equal(status, 0, output);
        assert.match(output, /^\[\w+\] PASS/m);
      } finally {
        await complex.stop();
      }
    });
  }
}

/** The complex that the clients expect: 16 cpus and job history. */
function runClient(
  complex: Complex,
  { name, run }: (typeof CLIENTS)[number],
  { owner, user }: Place,
): { status: number | null; output: string } {
  const as = owner === undefined ? {} : { as: owner };
  complex.must("partita", ["reset", "--home", complex.home, "--yes"], as);
  const env = complex.env();
  const variables = { PATH: env["PATH"], PBS_CONF_FILE: env["PBS_CONF_FILE"], ACC_WORK: complex.work(user), PYTHONDONTWRITEBYTECODE: "1" };
  const words = [
    ...(user === undefined ? [] : becoming(user)),
    "env",
    ...Object.entries(variables).map(([variable, value]) => `${variable}=${value}`),
    ...(user === undefined ? [] : [`USER=${user}`]),
    run[0],
    join(SHARED, "clients", name, run[1]),
  ];
  const result = spawnSync(words[0] as string, words.slice(1), { encoding: "utf8", cwd: complex.work(user), timeout: CLIENT_MS_MAX });
  return { status: result.status, output: `${result.stdout}${result.stderr}` };
}

function whyNoClient(path: string): string | undefined {
  return existsSync(path) ? undefined : `${path} is not installed; scripts/test-host.sh installs it (root)`;
}

function whyNoUser(user: string | undefined): string | undefined {
  const there = user === undefined || spawnSync("id", [user]).status === 0;
  return there ? undefined : `there is no user ${user}; scripts/test-host.sh adds it (root)`;
}
