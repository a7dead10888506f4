// Notifications: who is told what, and where they may be sent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { addressShown, letterFor, mailFault, mailText, type Watched, webhookBody, webhookFault } from "#grid/events/judas.ts";
import { parseJdl } from "#grid/jdl/jdl.ts";
import type { EventRecord, Subscription } from "#grid/shapes/event-record.ts";
import { parseGridSettings } from "#grid/shell/settings-file.ts";

const facts = { name: "c1", type: "partita", default_resources: null, resource_unit: "resource_id" } as const;
const read = parseJdl('{"name":"sweep","nb_jobs":3,"exec_file":"x","clusters":{"c1":{}}}', new Map([["c1", facts]]));
assert.ok("jdl" in read);
const { jdl } = read;

const event = (id: number, kind: EventRecord["class"], code: string, campaign: number | null): EventRecord => ({
  ...{ id, class: kind, code, campaign, cluster: "c1", job: kind === "job" ? 10 + id : null, task: null, at_s: 1000 + id },
  ...{ message: `message\n${id}`, state: "open" },
});
const EVENTS = [
  event(1, "job", "EXIT_ERROR", 1),
  event(2, "campaign", "SINK", 1),
  event(3, "cluster", "CLUSTER_DOWN", null),
  event(4, "notify", "CAMPAIGN_TERMINATED", 1),
  event(5, "job", "EXIT_ERROR", 2),
  event(6, "log", "NOTIFY_FAILED", null),
];
const watched: Watched = {
  campaigns: new Map([
    [1, { user: "anna", jdl }],
    [2, { user: "bob", jdl }],
  ]),
  events: new Map(EVENTS.map((each) => [each.id, each])),
  next_event: 7,
};
const ANNA: Subscription = { user: "anna", is_manager: false, method: "mail", address: "anna@x", severity: "low", next_event: 1 };

const LETTERS: readonly [what: string, subscription: Partial<Subscription>, events: readonly number[]][] = [
  ["own campaigns, the most severe first", {}, [2, 1, 4]],
  ["from medium on", { severity: "medium" }, [2, 1]],
  ["from high on", { severity: "high" }, [2]],
  ["a manager is told about clusters, too", { is_manager: true }, [2, 3, 1, 4]],
  ["only what was not told before", { next_event: 3 }, [4]],
  ["another user", { user: "bob" }, [5]],
  ["a user without campaigns", { user: "carl" }, []],
];
for (const [what, subscription, ids] of LETTERS)
  test(`a notification: ${what}`, () => {
    const letter = letterFor({ ...ANNA, ...subscription }, watched);
    assert.deepEqual([letter.events.map(({ id }) => id), letter.more, letter.upto], [ids, 0, 7]);
  });

test("a thousand failures make one notification with fifteen of them", () => {
  const many = Array.from({ length: 1000 }, (_, at) => event(at + 1, "job", "EXIT_ERROR", 1));
  const letter = letterFor(ANNA, { ...watched, events: new Map(many.map((each) => [each.id, each])), next_event: 1001 });
  assert.deepEqual([letter.events.length, letter.more, letter.upto], [15, 985, 1001]);
  const { subject, body } = mailText(letter, watched, String);
  assert.equal(subject, "PBS GRID 1000 events");
  assert.match(body, /\n985 more events; gridevents shows them\.\n$/);
});

test("the text of a mail has one line for each field, whatever a cluster says", () => {
  const { subject, body } = mailText(letterFor({ ...ANNA, severity: "high" }, watched), watched, String);
  assert.equal(subject, "PBS GRID SINK campaign 1 (sweep) on c1");
  assert.equal(body, "1002  high  SINK campaign 1 (sweep) on c1\n    message 2\n");
});

test("a webhook gets the events with the names of gridevents -F json", () => {
  assert.deepEqual(webhookBody(letterFor({ ...ANNA, severity: "high" }, watched), watched, "anna"), {
    user: "anna",
    events: [
      {
        ...{ id: 2, time: 1002, severity: "high", class: "campaign", code: "SINK", state: "open", campaign: 1, campaign_name: "sweep" },
        ...{ cluster: "c1", job: null, task: null, message: "message\n2" },
      },
    ],
    more: 0,
  });
});

const ALLOWED = ["https://hooks.example.org/partita", "http://127.0.0.1:8080/"];
const WEBHOOKS: readonly [url: string, fault: RegExp | null][] = [
  ["https://hooks.example.org/partita", null],
  ["https://hooks.example.org/partita/T1/secret?x=1", null],
  ["http://127.0.0.1:8080/anything", null],
  ["https://hooks.example.org/partita2", /not allowed/],
  ["https://hooks.example.org/partita/../admin", /not allowed/],
  ["https://hooks.example.org.evil.net/partita", /not allowed/],
  ["https://hooks.example.org:444/partita", /not allowed/],
  ["http://hooks.example.org/partita", /not allowed/],
  ["http://127.0.0.1:8081/", /not allowed/],
  ["https://me:pw@hooks.example.org/partita", /user or a password/],
  ["https://hooks.example.org/partita#x", /fragment/],
  ["file:///etc/passwd", /not allowed/],
  ["partita", /not a URL/],
];
for (const [url, fault] of WEBHOOKS)
  test(`a webhook ${url} is ${fault === null ? "allowed" : "refused"}`, () => {
    const why = webhookFault(url, ALLOWED);
    if (fault === null) assert.equal(why, null);
    else assert.match(why ?? "", fault);
    assert.doesNotMatch(why ?? "", /secret|pw/);
  });

test("no webhook is allowed unless the administrator lists some; mail addresses are words", () => {
  assert.match(webhookFault("https://hooks.example.org/", []) ?? "", /grid\.conf/);
  assert.equal(mailFault("anna@example.org"), null);
  for (const address of ["-oQ/tmp", "a b", "a\nBcc: c", "a,b", "`id`", "x".repeat(255)])
    assert.match(mailFault(address) ?? "", /not a mail address/);
  assert.equal(addressShown({ method: "webhook", address: "https://h.org/secret" }), "https://h.org/...");
});

const SETTINGS: readonly [text: string, fault: RegExp][] = [
  ["color=red", /there is no setting color/],
  ["mailer=sendmail", /mailer: the absolute path/],
  ["mail_from=-oQ", /mail_from/],
  ["notify_attempts=1.5", /notify_attempts: a whole number/],
  ["notify_attempts=0", /notify_attempts: a number from 1/],
  ["webhook_timeout=", /webhook_timeout: a number/],
  ["webhooks=https://a.org/ ftp://b.org/", /URL 2/],
  ["webhooks=https://u:p@a.org/", /URL 1/],
];
for (const [text, fault] of SETTINGS)
  test(`grid.conf: ${text} is a mistake`, () => {
    const read_settings = parseGridSettings(text);
    assert.ok(typeof read_settings === "string");
    assert.match(read_settings, fault);
    assert.doesNotMatch(read_settings, /u:p/);
  });

test("grid.conf: settings are read, others have defaults", () => {
  const settings = parseGridSettings("# ours\nwebhooks = https://a.org/x http://127.0.0.1:8/\nnotify_pause=0\n");
  assert.ok(typeof settings !== "string");
  assert.deepEqual(
    [settings.webhooks, settings.notify_pause_s, settings.notify_attempts],
    [["https://a.org/x", "http://127.0.0.1:8/"], 0, 5],
  );
});
