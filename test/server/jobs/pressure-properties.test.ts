// Pressure over random graphs of dependencies.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isDependent } from "#model/depend.ts";
import { pressuresNow } from "#server/jobs/pressure.ts";
import { prng } from "#support/prng.ts";
import { ALICE, addHost, apply, askOk, harness, jobAttrs, schedHello } from "../harness.ts";
import { qsub } from "../requests/qsub.ts";
import { ended, FORMULA, TRUE, told } from "./pressure-bed.ts";

test("random graphs: what schedulers were told of jobs that may run is the longest chain, after every change", async () => {
  for (let seed = 1; seed <= 20; seed++) {
    const random = prng(`pressure ${seed}`);
    const h = harness();
    const link = addHost(h, "n1", { ncpus: 1000 });
    apply(h, FORMULA);
    schedHello(h, 1);
    for (let step = 0; step < 60; step++) {
      const live = [...h.core.state.jobs.values()];
      const one = live.length > 0 ? random.pick(live).id : null;
      const parents = live.filter(() => random.chance(2 / (live.length + 1))).map(({ id }) => id);
      const type = random.pick(["afterok", "afterok", "afterany", "after", "afternotok"]);
      const depend = parents.length === 0 ? "" : `-W depend=${type}:${parents.join(":")}`;
      if (one === null || random.chance(0.6)) await qsub(h, `${depend} -l walltime=${random.int(1, 500)} ${TRUE}`);
      else if (random.chance(0.3)) await askOk(h, ALICE, { kind: "delete-job", job: one });
      else if (!isDependent(jobAttrs(h, one)["depend"])) ended(h, link, one, random.int(1, 50), random.pick([0, 0, 1]));
      const { state } = h.core;
      const naive = (id: string): number => {
        const job = state.jobs.get(id);
        assert.ok(job !== undefined);
        const behind = [...state.jobs.values()].filter(({ attrs }) =>
          ((attrs["depend"] as string[] | undefined) ?? []).some(
            (item) => /^after(ok|any)?:/.test(item) && item.split(":").includes(`${id}@svr`),
          ),
        );
        // All jobs have the same command, whose last success counts.
        const known = state.run_times.get(`${job.attrs.euser}\n${job.attrs.project}\n${job.attrs.Job_Name}`);
        const own = Object.values(known?.commands ?? {})[0] ?? job.attrs.Resource_List["walltime"];
        return Math.max(1, own as number) + Math.max(0, ...behind.map((other) => naive(other.id)));
      };
      const now = pressuresNow(state);
      const sent = told(h);
      for (const job of state.jobs.values()) {
        assert.ok(Math.abs(now(job) - naive(job.id)) < 1e-6, `seed=${seed} step ${step} ${job.id}`);
        // Learned times are sent later.
        if (job.attrs.job_state === "Q" && state.run_times.size === 0)
          assert.equal(sent[job.id.replace(".svr", "")], now(job), `seed=${seed} step ${step} ${job.id}`);
      }
    }
  }
});
