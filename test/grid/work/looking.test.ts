// What a look at a cluster changes: a row a sighting.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { JobSighting } from "#backends/contract/cluster.ts";
import { nth } from "#support/assert.ts";
import { coreOf, coreWith, ended, jobsIn, launch, memory, must, show, sighting, submit } from "../bed.ts";

/** What is seen of the only job of a campaign, and where its task is then: in the bag, running, in an event, done. */
const SEEN: readonly [
  what: string,
  seen: Partial<JobSighting>,
  where: readonly [bag: number, lives: number, failed: number, done: number],
][] = [
  ["it waits", {}, [0, 1, 0, 0]],
  ["it waits, and the cluster is short of resources", { fault: { kind: "limit", text: "full" } }, [0, 1, 0, 0]],
  ["it runs", { state: "running" }, [0, 1, 0, 0]],
  ["it ended well", { state: "ended", ending: "exit", exit_code: 0 }, [0, 0, 0, 1]],
  ["it failed", { state: "ended", ending: "exit", exit_code: 1 }, [0, 0, 1, 0]],
  ["it asked to run again", { state: "ended", ending: "exit", exit_code: 66 }, [1, 0, 0, 0]],
  ["it was killed", { state: "ended", ending: "killed" }, [1, 0, 0, 0]],
  ["it has ended, and the cluster does not say how", { state: "ended", ending: null }, [0, 1, 0, 0]],
];
for (const [what, seen, where] of SEEN)
  test(`a job: ${what}`, () => {
    const core = coreWith("c1");
    const id = submit(core, { nb_jobs: 1 });
    const job = nth(launch(core, "c1", 4, 100), 0);
    const { vanished } = show(core, "c1", [sighting(job, seen)], 110);
    const { bag, lives, failed, done } = core.state.campaigns.get(id) ?? assert.fail();
    assert.deepEqual([bag.size, lives.size, failed, done], where);
    assert.deepEqual(vanished, seen.state === "ended" && seen.ending === null ? [job] : []);
  });

test("a job that the cluster can never run pauses its campaign there, and all waiting jobs there are taken back", () => {
  const core = coreWith("c1", "c2");
  const id = submit(core, { nb_jobs: 3 });
  const [first, second, third] = launch(core, "c1", 4, 100);
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  const impossible = { fault: { kind: "impossible", text: "Can Never Run: too many cpus" } } as const;
  show(core, "c1", [sighting(first, { state: "running" }), sighting(second, impossible), sighting(third)], 110);
  const campaign = core.state.campaigns.get(id) ?? assert.fail();
  assert.match(campaign.pairs.get("c1")?.paused ?? "", /can never run these jobs: Can Never Run: too many cpus/);
  assert.equal(campaign.pairs.get("c2")?.paused, null);
  assert.deepEqual([first.kill, second.kill, third.kill], [null, "excess", "excess"]);
  // The jobs are still there at the next look: there is no second event.
  show(core, "c1", [sighting(first, { state: "running" }), sighting(second, impossible), sighting(third)], 111);
  const events = [...core.state.events.values()].filter(({ code }) => code === "IMPOSSIBLE");
  assert.deepEqual(
    events.map(({ class: kind, state, cluster }) => [kind, state, cluster]),
    [["campaign", "open", "c1"]],
  );
  const killed = { state: "ended", ending: "killed" } as const;
  show(core, "c1", [sighting(first, { state: "running" }), sighting(second, killed), sighting(third, killed)], 112);
  assert.equal(campaign.bag.size, 2);
  assert.equal(campaign.resubmissions.size, 0);
  // The tasks run elsewhere, and not on c1.
  assert.equal(launch(core, "c1", 4, 113).length, 1);
  assert.equal(launch(core, "c2", 4, 113).length, 2);
  must(core, { name: "anna", is_manager: false }, { kind: "grid-fix", event: events[0]?.id ?? 0, resubmit: false });
  assert.equal(campaign.pairs.get("c1")?.paused, null);
});

/** Ends the only job of a campaign so many times by exit code 66, with a restart of the daemon after each time. Returns the code of its event. */
function endings(times: number, jdl: object): string | undefined {
  let core = coreWith("c1");
  const store = memory();
  const id = submit(core, { nb_jobs: 1, ...jdl });
  for (let n = 0; n < times; n++) {
    const job = launch(core, "c1", 4, 100 + n)[0];
    if (job === undefined) break;
    show(core, "c1", [ended(job, 66, 1)], 100 + n);
    store.take(core);
    core = coreOf(store.next());
  }
  assert.equal(core.state.campaigns.get(id)?.tasks, 1);
  return [...core.state.events.values()][0]?.code;
}

test("a task that always asks to run again waits for the user at the limit, also if the daemon is started again", () => {
  assert.equal(endings(2, { resubmissions_max: 2 }), undefined);
  assert.equal(endings(3, { resubmissions_max: 2 }), "RESUBMISSIONS");
  assert.equal(endings(1, { resubmissions_max: 0 }), "RESUBMISSIONS");
  assert.equal(endings(20, {}), undefined);
  assert.equal(endings(21, {}), "RESUBMISSIONS");
});

test("a user who fixes the event lets the task run again as often as at first", () => {
  const core = coreWith("c1");
  const id = submit(core, { nb_jobs: 1, resubmissions_max: 1 });
  const again = (): void => void show(core, "c1", [ended(nth(launch(core, "c1", 4, 100), 0), 66, 1)], 100);
  again();
  again();
  assert.equal(core.state.campaigns.get(id)?.failed, 1);
  must(core, { name: "anna", is_manager: false }, { kind: "grid-fix", campaign: id, resubmit: true });
  again();
  assert.equal(core.state.campaigns.get(id)?.failed, 0);
  again();
  assert.equal(core.state.campaigns.get(id)?.failed, 1);
});

test("a sink is found although the daemon was started again in between", () => {
  let core = coreWith("slow", "sink");
  const store = memory();
  const id = submit(core, { nb_jobs: 60 });
  const end = (cluster: string, run_s: number, count: number): void => {
    const jobs = launch(core, cluster, 16, 100).slice(0, count);
    assert.equal(jobs.length, count);
    const others = jobsIn(core, cluster).filter((job) => !jobs.includes(job));
    show(core, cluster, [...jobs.map((job) => ended(job, 0, run_s)), ...others.map((job) => sighting(job))], 200);
  };
  end("slow", 1000, 10);
  end("sink", 0, 9);
  store.take(core);
  core = coreOf(store.next());
  assert.equal(core.state.campaigns.get(id)?.pairs.get("sink")?.paused, null);
  end("sink", 0, 1);
  assert.deepEqual(
    [...core.state.events.values()].map(({ code, cluster }) => [code, cluster]),
    [["SINK", "sink"]],
  );
});
