// What gridstat prints.

import assert from "node:assert/strict";
import { test } from "node:test";
import { errorsText, isOver, liveText, userSums, usersText } from "#cli/grid/campaign-texts.ts";
import { timeText } from "#cli/grid/tables.ts";
import type { GridCampaignView } from "#protocol/grid-messages.ts";

const pair = {
  cluster: "near",
  waiting: 1,
  running: 2,
  terminated: 5,
  average_s: 10,
  job_ratio: 1,
  throughput: 3,
  state: "open",
  why: null,
} as const;
const CAMPAIGN: GridCampaignView = {
  ...{ id: 1, name: "sweep", user: "anna", type: "default", state: "in_treatment", submission_time: 1000, end_time: null, total_jobs: 20 },
  ...{
    finished_jobs: 5,
    running_jobs: 2,
    waiting_jobs: 1,
    unsubmitted_jobs: 12,
    event_jobs: 0,
    open_events: 0,
    average_s: 10,
    throughput: 3,
  },
  ...{ estimated_end: 5000, clusters: [pair] },
};
const OVER: GridCampaignView = {
  ...CAMPAIGN,
  id: 2,
  state: "terminated",
  finished_jobs: 20,
  running_jobs: 0,
  waiting_jobs: 0,
  estimated_end: 3000,
};

const SUMS: readonly [
  what: string,
  items: readonly GridCampaignView[],
  rows: readonly (readonly [string, number, number, number, number | null])[],
][] = [
  ["no campaigns", [], []],
  ["one user", [CAMPAIGN, OVER], [["anna", 2, 1, 25, 5000]]],
  ["all campaigns are over", [OVER], [["anna", 1, 0, 20, null]]],
  ["the last end counts", [CAMPAIGN, { ...CAMPAIGN, id: 3, estimated_end: 9000 }], [["anna", 2, 2, 10, 9000]]],
  ["one end is unknown", [CAMPAIGN, { ...CAMPAIGN, id: 3, estimated_end: null }], [["anna", 2, 2, 10, null]]],
  [
    "users in the order of their names",
    [{ ...CAMPAIGN, user: "bob" }, CAMPAIGN],
    [
      ["anna", 1, 1, 5, 5000],
      ["bob", 1, 1, 5, 5000],
    ],
  ],
];
for (const [what, items, rows] of SUMS)
  test(`campaigns of each user: ${what}`, () => {
    const sums = userSums(items);
    assert.deepEqual(
      sums.map((sum) => [sum.user, sum.campaigns, sum.open_campaigns, sum.finished_jobs, sum.estimated_end]),
      rows,
    );
  });

test("the table of users", () => {
  assert.equal(
    usersText(userSums([CAMPAIGN, OVER])),
    `user  open  done   running  waiting  events  end expected\nanna  1/2   25/40        2        1       0  ${timeText(5000)}\n`,
  );
});

test("errors to fix are shown with the commands that fix them", () => {
  assert.equal(errorsText([]), "No errors to fix.\n");
  const event = {
    id: 7,
    class: "job",
    code: "EXIT_ERROR",
    state: "open",
    campaign: 1,
    cluster: "near",
    job: 33,
    time: 2000,
    message: "code 3",
  } as const;
  const text = errorsText([event]);
  assert.match(text, /^event +time +campaign +cluster +job +code +message\n +7 .* 1 +near +33 +EXIT_ERROR +code 3\n/);
  assert.match(text, /gridevents -f -r -e EVENT/);
});

test("the live view: bars of campaigns and clusters; each picture overwrites the one before", () => {
  const lines = liveText(
    [OVER, { ...CAMPAIGN, open_events: 2, clusters: [pair, { ...pair, cluster: "far", terminated: 0, why: "down" }] }],
    4000,
  ).split("\u001b[K\n");
  assert.equal(lines[0], `\u001b[Hgridstat --live  ${timeText(4000)}  2 of 2 campaigns`);
  assert.equal(lines[2], `1 sweep  anna  in_treatment  end expected ${timeText(5000)}`);
  assert.equal(lines[3], `  [${"#".repeat(10)}${".".repeat(30)}]  25.0 %  5/20, 2 events to fix`);
  assert.equal(lines[4], `    near             [${"#".repeat(5)}${".".repeat(15)}] 5 done, 2 running, 1 waiting`);
  assert.match(lines[5] ?? "", /^ {4}far .*: down$/);
  assert.equal(lines.at(-1), "\u001b[J");
  assert.equal(isOver([OVER]), true);
  assert.equal(isOver([OVER, CAMPAIGN]), false);
});
