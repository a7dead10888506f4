// Admission rules: JavaScript files of the administrator in grid_priv/admission_rules, which may change, default or refuse each new campaign. They run in the order of
// their names, in a hook host (src/hooks): a process without any rights.
//
// A1. A campaign is admitted only if every rule has ended without an error and has not refused the campaign. If a rule fails, loops or is killed, the campaign is refused,
//     and the log says why.
// A2. The rules are read again for each campaign, so that a change of a file has effect at once.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { type HookHost, startHost } from "#hooks/hook-host.ts";
import type { GridSubmit } from "#protocol/grid-messages.ts";
import { codeOf, messageOf } from "#support/caught.ts";
import { digestOf } from "#support/digest.ts";

const ALARM_MS = 5000;
/** If the daemon cannot kill a hook host, for example because the daemon has ended, the hook host ends itself. This is the time between the two limits. */
const LIMIT_BEYOND_MS = 5000;
/** A process that no rule has needed for this time ends. */
const IDLE_MS = 60_000;
const RULE_CHARS_MAX = 1_000_000;
const REASON_CHARS_MAX = 2000;

export type Admission = {
  /** Returns the campaign as the rules have changed it, or the reason of a refusal. */
  check(request: GridSubmit, user: string, jobs: number): Promise<GridSubmit | { readonly refused: string }>;
  close(): void;
};

type Options = {
  readonly directory: string;
  /** the user that rules run as if this process is root */
  readonly nobody: { readonly uid: number; readonly gid: number } | null;
  readonly note: (text: string) => void;
};

type Rule = { readonly name: string; readonly text: string };

const verdict = z.union([
  z.object({
    verdict: z.literal("admit"),
    type: z.enum(["test", "default"]).nullable().optional(),
    jdl: z.record(z.string(), z.unknown()),
  }),
  z.object({ verdict: z.literal("refuse"), reason: z.string() }),
  z.object({ verdict: z.literal("error"), error: z.string() }),
  z.object({ verdict: z.literal("stopped") }),
]);

export function admission({ directory, nobody, note }: Options): Admission {
  let host: HookHost | null = null;
  let idle: NodeJS.Timeout | undefined;
  /** campaigns are checked one after the other, so that rules that loop keep only one process busy */
  let turn: Promise<unknown> = Promise.resolve();
  const close = (): void => {
    clearTimeout(idle);
    host?.close();
    host = null;
  };
  const ran = async ({ name, text }: Rule, input: object): Promise<z.infer<typeof verdict>> => {
    if (host?.alive !== true) host = startHost("javascript", { nobody, setup: {} });
    const key = `${name}:${digestOf(text)}`;
    const frame = { script: key, hook: { name }, limit_ms: ALARM_MS + LIMIT_BEYOND_MS, rule: JSON.stringify(input) };
    const content = Buffer.from(text).toString("base64");
    const answer = await host.run({ key, name, content, frame, alarm_ms: ALARM_MS, answer: () => ({ error: "rules ask nothing" }) });
    const read = verdict.safeParse(answer);
    return read.success ? read.data : { verdict: "error", error: "its verdict is not understood" };
  };
  const check = async (request: GridSubmit, user: string, jobs: number): ReturnType<Admission["check"]> => {
    const rules = rulesIn(directory);
    if (rules.length === 0) return request;
    const before = JSON.stringify(JSON.parse(request.jdl));
    let { type = null, jdl }: { type?: "test" | "default" | null; jdl: unknown } = {
      type: request.type ?? null,
      jdl: JSON.parse(request.jdl),
    };
    for (const rule of rules) {
      const says = await ran(rule, { user, type, jobs, jdl });
      if (says.verdict === "refuse") return { refused: cut(says.reason) };
      if (says.verdict !== "admit")
        return failed(rule, says.verdict === "stopped" ? `it did not end within ${ALARM_MS / 1000} s` : says.error, note);
      [type, jdl] = [says.type ?? null, says.jdl];
    }
    const after = JSON.stringify(jdl);
    const { type: _, ...rest } = request;
    // A text that no rule has changed stays as it was written, so that faults are shown where the user wrote them.
    return { ...rest, ...(type === null ? {} : { type }), jdl: after === before ? request.jdl : JSON.stringify(jdl, null, 1) };
  };
  return {
    check: (request, user, jobs) => {
      const checked = turn.then(() => check(request, user, jobs));
      turn = checked.catch(() => undefined);
      clearTimeout(idle);
      idle = setTimeout(close, IDLE_MS);
      idle.unref();
      return checked;
    },
    close,
  };
}

const cut = (text: string): string => (text.length <= REASON_CHARS_MAX ? text : `${text.slice(0, REASON_CHARS_MAX - 3)}...`);

function failed({ name }: Rule, why: string, note: Options["note"]): { readonly refused: string } {
  note(`admission rule ${name} failed: ${cut(why)}`);
  return { refused: cut(`the admission rule ${name} failed, so nothing is admitted: ${why}`) };
}

function rulesIn(directory: string): readonly Rule[] {
  let names: readonly string[];
  try {
    names = readdirSync(directory).filter((name) => /^[A-Za-z0-9_][A-Za-z0-9_.-]*\.js$/.test(name));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw new Error(`admission rules cannot be read: ${messageOf(error)}`);
  }
  return [...names].sort().map((name) => {
    const text = readFileSync(join(directory, name), "utf8");
    if (text.length > RULE_CHARS_MAX) throw new Error(`the admission rule ${name} has more than ${RULE_CHARS_MAX} characters`);
    return { name, text };
  });
}
