// `partita top` on a terminal: draws the lines that screen.ts makes, and passes keys to it.

import { Box, render, Text, useApp, useInput, useStdout } from "ink";
import { useEffect, useState } from "react";
import type { TopPicture } from "./picture.ts";
import type { Line, Size, Style, TopKey, TopState } from "./screen.ts";
import { press, screenLines, TOP_START } from "./screen.ts";

/** What the view needs from outside. */
export type TopWorld = {
  /** returns the present data; null: the server does not answer */
  picture(): Promise<TopPicture | null>;
  /** returns the explanation of a job, or the reason why there is none */
  explain(job: string): Promise<string>;
  readonly refresh_ms: number;
};

/** Shows the view until the user presses q or ^C. */
export async function runTop(world: TopWorld): Promise<void> {
  await render(<Top world={world} />, { alternateScreen: true }).waitUntilExit();
}

function Top({ world }: { readonly world: TopWorld }) {
  const { exit } = useApp();
  const { stdout } = useStdout();
  const [picture, setPicture] = useState<TopPicture | null>(null);
  const [reached, setReached] = useState(true);
  const [state, setState] = useState<TopState>(TOP_START);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the world does not change while the view runs
  useEffect(() => {
    let over = false;
    let timer: NodeJS.Timeout | null = null;
    const refresh = async (): Promise<void> => {
      const next = await world.picture();
      if (over) return;
      setReached(next !== null);
      if (next !== null) setPicture(next);
      timer = setTimeout(() => void refresh(), world.refresh_ms);
    };
    void refresh();
    return () => {
      over = true;
      if (timer !== null) clearTimeout(timer);
    };
  }, []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: asked once a job
  useEffect(() => {
    const job = state.asking;
    if (job === null) return;
    void world
      .explain(job)
      .then((text) => setState((now) => (now.asking === job ? { ...now, asking: null, opened: { job, text, from: 0 } } : now)));
  }, [state.asking]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: exit is always the same
  useEffect(() => {
    if (state.over) exit();
  }, [state.over]);

  useInput((input, key) => {
    const pressed = keyOf(input, key);
    if (pressed !== null && picture !== null) setState((now) => press(now, pressed, picture));
    else if (input === "q") exit();
  });

  const { columns = 80, rows = 24 } = stdout as NodeJS.WriteStream;
  const size = { columns, rows: rows - 1 };
  if (picture === null) return <Text>{reached ? "asking the server ..." : "the server does not answer; q ends"}</Text>;
  return <Screen picture={picture} state={state} size={size} reached={reached} />;
}

type ScreenProps = { readonly picture: TopPicture; readonly state: TopState; readonly size: Size; readonly reached: boolean };

export function Screen({ picture, state, size, reached }: ScreenProps) {
  const lines = screenLines(picture, state, { ...size, rows: reached ? size.rows : size.rows - 1 });
  return (
    <Box flexDirection="column">
      {lines.map((line, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a line is its place on the screen
        <Row key={at} line={line} />
      ))}
      {reached ? null : <Text color="red">the server does not answer: this is old</Text>}
    </Box>
  );
}

const STYLES: { readonly [S in Style]: Readonly<Record<string, boolean | string>> } = {
  plain: {},
  bold: { bold: true },
  faint: { dimColor: true },
  good: { color: "green" },
  bad: { color: "red" },
  warn: { color: "yellow" },
  chosen: { inverse: true },
};

function Row({ line }: { readonly line: Line }) {
  if (line.length === 0) return <Text> </Text>;
  return (
    <Text wrap="truncate">
      {line.map(({ text, style }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a piece is its place in the line
        <Text key={at} {...STYLES[style]}>
          {text}
        </Text>
      ))}
    </Text>
  );
}

type InkKey = Parameters<Parameters<typeof useInput>[0]>[1];

function keyOf(input: string, key: InkKey): TopKey | null {
  if (key.upArrow) return { kind: "up" };
  if (key.downArrow) return { kind: "down" };
  if (key.return) return { kind: "enter" };
  if (key.escape) return { kind: "escape" };
  if (key.tab) return { kind: "tab" };
  if (key.backspace || key.delete) return { kind: "backspace" };
  return key.ctrl || key.meta || input === "" ? null : { kind: "text", text: input };
}
