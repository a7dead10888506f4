// Attributes of hooks: accepted values, refusals with their texts (docs/reference/attributes.md 9, docs/reference/execution.md
// 9), and the order in which hooks run.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Reject } from "#model/pbse.ts";
import {
  alterHook,
  canonicalBase64,
  checkHookName,
  contentKind,
  freshHook,
  HOOK_BYTES_MAX,
  type Hook,
  hookAttrTexts,
  hooksOf,
} from "#model/tables/hook.ts";

type Op = "=" | "+=" | "-=" | "unset";

/** Applies `event=queuejob order=2` and returns the attributes as listed, or the refusal. */
function after(...terms: readonly (readonly [name: string, op: Op, value: string])[]): string {
  try {
    const attrs = alterHook(
      freshHook(),
      terms.map(([name, op, value]) => ({ name, op, value })),
    );
    const fresh = hookAttrTexts(freshHook());
    return Object.entries(hookAttrTexts(attrs))
      .filter(([name, value]) => fresh[name] !== value)
      .map(([name, value]) => `${name}=${value}`)
      .join(" ");
  } catch (error) {
    assert.ok(error instanceof Reject);
    assert.equal(error.code, 15136);
    return `refused: ${error.text}`;
  }
}

test("attributes of hooks are set as PBS sets them", () => {
  const TABLE: readonly (readonly [readonly (readonly [string, Op, string])[], string])[] = [
    [[["event", "=", "queuejob"]], "event=queuejob"],
    [[["EVENT", "=", "movejob,modifyjob"]], "event=modifyjob,movejob"],
    [
      [
        ["event", "=", "queuejob"],
        ["event", "+=", "resvsub"],
        ["event", "-=", "queuejob"],
      ],
      "event=resvsub",
    ],
    [
      [
        ["event", "=", "queuejob"],
        ["event", "=", '""'],
      ],
      "",
    ],
    [[["event", "=", "periodic"]], "event=periodic freq=120"],
    [[["enabled", "=", "F"]], "enabled=false"],
    [[["enabled", "=", "perhaps"]], "refused: unexpected value 'perhaps' must be (not case sensitive) true|t|y|1|false|f|n|0"],
    [[["debug", "=", "1"]], "debug=true"],
    [[["user", "=", "pbsuser"]], "user=pbsuser"],
    [[["user", "=", "root"]], "refused: user value of a hook must be pbsadmin,pbsuser"],
    [[["alarm", "=", "5"]], "alarm=5"],
    [[["alarm", "=", "0"]], "refused: alarm value of a hook must be > 0"],
    [[["alarm", "=", "soon"]], "refused: encountered a non-digit alarm value: soon"],
    [[["alarm", "+=", "5"]], "refused: operator += is not for the attribute alarm"],
    [
      [
        ["alarm", "=", "5"],
        ["alarm", "unset", ""],
      ],
      "",
    ],
    [[["order", "=", "1000"]], "order=1000"],
    [[["order", "=", "0"]], "refused: order given (0) is outside the acceptable range of [1, 1000] for type 'site'."],
    [[["type", "=", "pbs"]], "refused: a hook of type pbs comes with PBS: it cannot be made"],
    [[["nosuch", "=", "1"]], "refused: Undefined attribute  - nosuch"],
    [[["pending_delete", "=", "t"]], "refused: Undefined attribute  - pending_delete"],
    [[["event", "=", "provision"]], "refused: the event provision is not supported: vnodes are not provisioned by this release"],
    [
      [
        ["event", "=", "execjob_begin"],
        ["fail_action", "=", "offline_vnodes"],
      ],
      "event=execjob_begin fail_action=offline_vnodes",
    ],
    [
      [
        ["event", "=", "execjob_prologue"],
        ["fail_action", "=", "offline_vnodes"],
        ["fail_action", "+=", "scheduler_restart_cycle"],
      ],
      "event=execjob_prologue fail_action=offline_vnodes,scheduler_restart_cycle",
    ],
    [
      [
        ["event", "=", "exechost_periodic"],
        ["fail_action", "=", "offline_vnodes"],
      ],
      "refused: Can't set hook fail_action value to 'offline_vnodes': hook event must contain at least one of execjob_begin, exechost_startup, execjob_prologue",
    ],
  ];
  for (const [terms, expected] of TABLE) assert.equal(after(...terms), expected, JSON.stringify(terms));
  assert.match(
    after(["event", "=", "pop"]),
    /^refused: invalid argument \(pop\) to event. Should be one or more of: queuejob,.* or "" for no event.$/,
  );
});

test("names of hooks are names of files", () => {
  for (const name of ["h1", "my-hook.v2", "a_b"]) checkHookName(name);
  for (const name of ["", "PBS_x", "pbsfoo", "../x", "a/b", "1a", "a b", "x".repeat(80)])
    assert.throws(() => checkHookName(name), Reject, name);
});

test("contents are base64, whole and within the limit", () => {
  assert.equal(canonicalBase64("aW1w\nb3J0\r\n IA==\n"), "aW1wb3J0IA==");
  assert.equal(canonicalBase64(""), "");
  for (const text of ["abc", "a===", "äöüß", "ab=c", "aGk=aGk="]) assert.throws(() => canonicalBase64(text), Reject, text);
  const whole = "A".repeat((HOOK_BYTES_MAX / 3 + 2) * 4 - (((HOOK_BYTES_MAX / 3 + 2) * 4) % 4));
  assert.throws(() => canonicalBase64(whole), /longer than/);
  assert.equal(contentKind("application/x-javascript"), "javascript");
  assert.throws(() => contentKind("text/html"), Reject);
});

test("hooks of an event run by order, then in the order in which they were made; what is off or empty does not run", () => {
  const hook = (name: string, order: number, attrs: object, script = true): Hook => ({
    name,
    order,
    attrs: { ...freshHook(), event: ["queuejob"], ...attrs },
    script: script ? { language: "python", content: "" } : null,
    config: null,
  });
  const hooks = [
    hook("late", 1, { order: 5 }),
    hook("second", 3, {}),
    hook("first", 2, {}),
    hook("off", 4, { enabled: false }),
    hook("empty", 5, {}, false),
    hook("other", 6, { event: ["movejob"] }),
  ];
  assert.deepEqual(
    hooksOf(hooks, "queuejob").map(({ name }) => name),
    ["first", "second", "late"],
  );
});
