// The admin shell: the interface of `qmgr` on a terminal. It has a prompt and a status line with the schedulers. While the
// user types, it completes words, shows help and marks errors. The text of the prompt is `Qmgr: `, as in PBS. This file only
// draws: editor.ts, completion.ts and session.ts decide everything.

import { Box, render, Static, Text, useApp, useInput } from "ink";
import { type RefObject, useEffect, useRef, useState } from "react";
import { attributeLookup } from "../language/attribute-lookup.ts";
import { parseRequest } from "../language/grammar.ts";
import { NO_PENDING, type PendingLine, takeLine } from "../language/line-reader.ts";
import type { ParseFault } from "../language/request.ts";
import type { Outcome } from "../session/session.ts";
import { complete, type KnownNames } from "./completion.ts";
import { type EditorKey, type EditorState, EMPTY_EDITOR, keysOfText, pressKey, type ShellKey } from "./editor.ts";

export type SchedStatus = {
  readonly name: string;
  readonly state: string;
  readonly partition: string;
  readonly scheduling: boolean;
  readonly comment: string;
};
export type ShellStatus = { readonly server: string; readonly server_state: string; readonly scheds: readonly SchedStatus[] };

/** What the shell needs from outside. run executes a line and writes its output through the two callbacks. */
export type ShellWorld = {
  run(line: string, out: (text: string) => void, err: (text: string) => void): Promise<Outcome>;
  status(): Promise<ShellStatus | undefined>;
  names(): Promise<KnownNames>;
  /** returns the history, oldest line first */
  history(): readonly string[];
  remember(line: string): void;
  /** how often the status line is updated */
  readonly refresh_ms: number;
};

type Typing = { readonly editor: EditorState; readonly pending: PendingLine };
type Entry = { readonly key: number; readonly text: string; readonly kind: "typed" | "out" | "err" };

/** Runs the shell until ^D or quit. Returns the exit status of qmgr. */
export async function runShell(world: ShellWorld): Promise<number> {
  let status = 0;
  const app = render(
    <Shell
      world={world}
      onStatus={(value) => {
        status = value;
      }}
    />,
    { exitOnCtrlC: false },
  );
  await app.waitUntilExit();
  return status;
}

/** The schedulers for the status line and the names for the completion, asked again at intervals. */
function useNews(world: ShellWorld) {
  const [known, setKnown] = useState<KnownNames>({});
  const [status, setStatus] = useState<ShellStatus | undefined>(undefined);
  const refresh = async (): Promise<void> => {
    setStatus(await world.status());
    setKnown(await world.names());
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: the world does not change while the shell runs
  useEffect(() => {
    void refresh();
    const timer = setInterval(() => void refresh(), world.refresh_ms);
    return () => clearInterval(timer);
  }, []);
  return { known, status, refresh };
}

/** Keeps requests and their output, in the order in which they appeared. */
function useTranscript() {
  const [entries, setEntries] = useState<readonly Entry[]>([]);
  const next_key = useRef(0);
  const print = (kind: Entry["kind"], text: string): void => {
    const key = next_key.current++;
    setEntries((all) => [...all, { key, kind, text: text.replace(/\n$/, "") }]);
  };
  return { entries, print };
}

function Shell({ world, onStatus }: { readonly world: ShellWorld; readonly onStatus: (status: number) => void }) {
  const { exit } = useApp();
  const { known, status, refresh } = useNews(world);
  const { entries, print } = useTranscript();
  const [editor, setEditor] = useState<EditorState>(EMPTY_EDITOR);
  const [pending, setPending] = useState<PendingLine>(NO_PENDING);
  /** the input line after the latest key. Each key changes it at once, because several keys may arrive before the next drawing */
  const typing = useRef<Typing>({ editor: EMPTY_EDITOR, pending: NO_PENDING });

  const change = (next: Partial<Typing>): void => {
    typing.current = { ...typing.current, ...next };
    if (next.editor !== undefined) setEditor(next.editor);
    if (next.pending !== undefined) setPending(next.pending);
  };

  const leave = (): void => {
    keys.current = [];
    exit();
  };

  const submit = async (): Promise<void> => {
    const line = typing.current.editor.text;
    print("typed", `${typing.current.pending.continued ? "Qmgr< " : "Qmgr: "}${line}`);
    change({ editor: EMPTY_EDITOR });
    const recalled = /^!(\d+)\s*$/.exec(line);
    const typed = recalled === null ? line : world.history()[Number(recalled[1]) - 1];
    if (typed === undefined) return print("err", `No item ${recalled?.[1]} in history`);
    if (typed.trim() !== "") world.remember(typed);
    const taken = takeLine(typing.current.pending, typed);
    change({ pending: taken.pending });
    for (const request of taken.requests) {
      const outcome = await world.run(
        request,
        (text) => print("out", text),
        (text) => print("err", text),
      );
      onStatus(outcome.status);
      if (outcome.kind === "quit") {
        return leave();
      }
    }
    await refresh();
  };

  const press = async (key: ShellKey): Promise<void> => {
    const { editor: now } = typing.current;
    if (key.kind === "enter") await submit();
    else if (key.kind === "end-of-input") {
      if (now.text === "") leave();
      else change({ editor: pressKey(now, { kind: "delete" }, world.history(), known) });
    } else if (key.kind === "interrupt") change({ editor: EMPTY_EDITOR, pending: NO_PENDING });
    else change({ editor: pressKey(now, key, world.history(), known) });
  };
  const keys = useKeys(press);

  const fault = faultOf(editor.text, pending);
  return (
    <>
      <Transcript entries={entries} />
      <Box flexDirection="column">
        <Prompt editor={editor} continued={pending.continued} column={fault?.kind === "syntax" ? fault.column : undefined} />
        <Candidates shown={editor.shown} />
        <Hint text={editor.text} cursor={editor.cursor} known={known} fault={fault} />
        <StatusLine status={status} />
      </Box>
    </>
  );
}

const CANDIDATES_MAX = 40;

/** Handles keys one by one. While a request is executed, keys wait. Returns the waiting keys, which the caller must remove when the user leaves the shell. */
function useKeys(press: (key: ShellKey) => Promise<void>): RefObject<ShellKey[]> {
  const keys = useRef<ShellKey[]>([]);
  const working = useRef(false);
  useInput((input, key) => {
    keys.current.push(...toShellKeys(input, key));
    if (working.current) return;
    working.current = true;
    const work = async (): Promise<void> => {
      try {
        for (let next = keys.current.shift(); next !== undefined; next = keys.current.shift()) await press(next);
      } finally {
        working.current = false;
      }
    };
    void work();
  });
  return keys;
}

function Transcript({ entries }: { readonly entries: readonly Entry[] }) {
  return (
    <Static items={[...entries]}>
      {(entry) => (
        <Text key={entry.key} {...(entry.kind === "err" ? { color: "red" } : entry.kind === "typed" ? { bold: true } : {})}>
          {entry.text}
        </Text>
      )}
    </Static>
  );
}

function Candidates({ shown }: { readonly shown: readonly string[] }) {
  if (shown.length === 0) return null;
  return (
    <Text dimColor wrap="wrap">
      {shown.slice(0, CANDIDATES_MAX).join("  ")}
      {shown.length > CANDIDATES_MAX ? `  (${shown.length - CANDIDATES_MAX} more)` : ""}
    </Text>
  );
}

/** Draws the input line with a cursor. If the line has an error, the character at the position of the error is marked. */
function Prompt({
  editor,
  continued,
  column,
}: {
  readonly editor: EditorState;
  readonly continued: boolean;
  readonly column: number | undefined;
}) {
  const text = `${editor.text} `;
  const edges = [0, editor.cursor, editor.cursor + 1, ...(column === undefined ? [] : [column, column + 1]), text.length];
  const starts = [...new Set(edges)].filter((edge) => edge <= text.length).sort((a, b) => a - b);
  return (
    <Text>
      {continued ? "Qmgr< " : "Qmgr: "}
      {starts.map((start, index) => (
        <Text
          key={start}
          inverse={start === editor.cursor}
          {...(start === column && column < editor.text.length ? { color: "red", underline: true } : {})}
        >
          {text.slice(start, starts[index + 1])}
        </Text>
      ))}
    </Text>
  );
}

function Hint({
  text,
  cursor,
  known,
  fault,
}: {
  readonly text: string;
  readonly cursor: number;
  readonly known: KnownNames;
  readonly fault: ParseFault | undefined;
}) {
  if (text.trim() === "") return <Text dimColor>Tab completes, help tells more, ^D ends</Text>;
  const { help } = complete(text, cursor, known);
  const said = fault === undefined ? "" : faultText(fault, text);
  return (
    <Text>
      <Text dimColor>{help}</Text>
      {said === "" ? (
        ""
      ) : (
        <Text color="yellow">
          {help === "" ? "" : "  "}
          {said}
        </Text>
      )}
    </Text>
  );
}

function StatusLine({ status }: { readonly status: ShellStatus | undefined }) {
  if (status === undefined) return <Text color="red">no server</Text>;
  return (
    <Text>
      <Text inverse>
        {" "}
        {status.server} {status.server_state}{" "}
      </Text>
      {status.scheds.map((sched) => (
        <Text key={sched.name}>
          {"  "}
          {sched.name}
          {sched.partition === "" ? "" : `[${sched.partition}]`}{" "}
          <Text color={sched.state === "down" ? (sched.scheduling ? "red" : "gray") : sched.state === "scheduling" ? "cyan" : "green"}>
            {sched.state}
          </Text>
          {sched.comment === "" ? "" : <Text color="yellow"> {sched.comment}</Text>}
        </Text>
      ))}
    </Text>
  );
}

/** Returns the fault to show while the user types. There is none if the line is to be continued. */
function faultOf(text: string, pending: PendingLine): ParseFault | undefined {
  if (text.trim() === "" || pending.continued || text.endsWith("\\")) return undefined;
  const parsed = parseRequest(text, attributeLookup);
  return parsed.ok ? undefined : parsed.fault;
}

function faultText(fault: ParseFault, text: string): string {
  switch (fault.kind) {
    case "operation":
      return `no such verb: ${fault.word}`;
    case "object":
      return `no such object type: ${fault.word}`;
    case "no-object":
      return "";
    case "syntax":
      return fault.column >= text.length ? "incomplete" : "syntax error at the mark";
    default: {
      const unreachable: never = fault;
      return unreachable;
    }
  }
}

type InkKey = Parameters<Parameters<typeof useInput>[0]>[1];

/** Returns the keys in one piece of input. A terminal may deliver a whole paste at once, with its line ends. */
function toShellKeys(input: string, key: InkKey): readonly ShellKey[] {
  if (key.ctrl && input === "d") return [{ kind: "end-of-input" }];
  if (key.ctrl && input === "c") return [{ kind: "interrupt" }];
  if (key.return) return [{ kind: "enter" }];
  const pressed = toEditorKey(input, key);
  return pressed === undefined ? [] : pressed.kind === "text" ? keysOfText(pressed.text) : [pressed];
}

function toEditorKey(input: string, key: InkKey): EditorKey | undefined {
  if (key.leftArrow || (key.ctrl && input === "b")) return { kind: "left" };
  if (key.rightArrow || (key.ctrl && input === "f")) return { kind: "right" };
  if (key.upArrow || (key.ctrl && input === "p")) return { kind: "up" };
  if (key.downArrow || (key.ctrl && input === "n")) return { kind: "down" };
  if (key.tab) return { kind: "tab" };
  if (key.backspace || key.delete) return { kind: "backspace" };
  if (key.ctrl) {
    const kind = ({ a: "home", e: "end", d: "delete", w: "kill-word", u: "kill-line", k: "kill-rest" } as const)[input];
    return kind === undefined ? undefined : { kind };
  }
  if (key.meta || key.escape || input === "") return undefined;
  return { kind: "text", text: input };
}
