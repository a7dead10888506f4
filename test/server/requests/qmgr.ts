// qmgr on a test's server core, without processes: lines as a user types them, with output and exit status.

import assert from "node:assert/strict";
import type { StatusItem } from "#protocol/messages.ts";
import { QmgrSession } from "#qmgr/session/session.ts";
import type { Peer } from "#server/engine/identity.ts";
import { ask, type Harness, HOST, ROOT, statusOf, user, utcTime } from "../harness.ts";

/** Output of both streams, and `[status]` if it is not 0. */
export async function qmgr(h: Harness, line: string, who: Peer = ROOT): Promise<string> {
  let text = "";
  const write = (part: string): void => {
    text += part;
  };
  const server = {
    manage: async (request: Parameters<typeof ask>[2]) => {
      const answer = ask(h, who, request);
      assert.ok(answer !== undefined, `no answer to ${line}`);
      return answer;
    },
    importHook: async (request: Parameters<typeof ask>[2]) => ask(h, who, request),
    exportHook: async (request: Parameters<typeof ask>[2]) => {
      const answer = ask(h, who, request);
      return answer?.ok === true ? { ok: true as const, ...(answer.value as object) } : answer;
    },
    status: async (request: Parameters<typeof ask>[2]) => {
      const token = h.next_token;
      const answer = ask(h, who, request);
      assert.ok(answer !== undefined, `no answer to ${line}`);
      return answer.ok ? { ok: true as const, items: (h.parts.get(token) ?? []) as StatusItem[] } : answer;
    },
  };
  const world = {
    out: write,
    err: write,
    ctime: utcTime,
    stdinIsTty: true,
    closedFormulaFile: () => null,
    history: () => [],
    hookFiles: {
      read: async (file: string) => (file === "-" ? { fault: "- cannot be read here" } : { content: btoa(file) }),
      write: async (_file: string | undefined, _encoding: string, content: string) => {
        write(atob(content));
        return {};
      },
    },
    connect: async (name: string) => (["", "default", HOST].includes(name) ? server : undefined),
  };
  const session = new QmgrSession(world as never, { abort: false, echo: false, parseOnly: false, silent: false }, []);
  const { status } = await session.run(line);
  return status === 0 ? text : `${text}[${status}]\n`;
}

/** The last line that gives a reason: `15018 Unknown queue`, or "ok". */
export async function verdict(h: Harness, line: string, who: Peer = ROOT): Promise<string> {
  const text = await qmgr(h, line, who);
  const code = /qmgr: (?:Error \((\d+)\)|hook error) returned from server/.exec(text);
  if (code === null) return text === "" ? "ok" : text;
  const reason = /^qmgr obj=\S* svr=\S*: (.*)$/m.exec(text)?.[1];
  return `${code[1] ?? 15136}${reason === undefined ? "" : ` ${reason}`}`;
}

/** One attribute of a status item as text; undefined: not shown. */
export function shown(
  h: Harness,
  object: "server" | "queue" | "node" | "sched" | "job" | "backend",
  name: string,
  attribute: string,
  who: Peer = ROOT,
): unknown {
  const items = statusOf(h, who, { kind: "status", object, ids: object === "server" ? [] : [name] }) as StatusItem[];
  const [item] = items;
  assert.ok(item !== undefined && "attrs" in item, `${object} ${name}: ${JSON.stringify(item)}`);
  return item.attrs[attribute];
}

/**
 * Runs lines one after the other, each with its verdict ("ok" if none is given). A line that begins with `alice: ` is run as
 * that user.
 */
export async function session(h: Harness, rows: readonly (readonly [line: string, expected?: string])[]): Promise<void> {
  for (const [line, expected = "ok"] of rows) {
    const [, name, rest = line] = /^(alice|bob): (.*)$/s.exec(line) ?? [];
    assert.equal(await verdict(h, rest, name === undefined ? ROOT : user(name)), expected, line);
  }
}
