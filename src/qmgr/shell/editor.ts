// The input line of the admin shell: text, cursor, history, completion. Pure: pressKey takes a state and a key, and returns a new state.

import { type Completion, commonPrefix, complete, type KnownNames } from "./completion.ts";

export type EditorState = {
  readonly text: string;
  readonly cursor: number;
  /** position in the history; if it is history.length, the new line is shown */
  readonly history_index: number;
  /** the text of the new line, kept while the user looks at lines of the history */
  readonly draft: string;
  /** candidates shown after a Tab */
  readonly shown: readonly string[];
};
export const EMPTY_EDITOR: EditorState = { text: "", cursor: 0, history_index: -1, draft: "", shown: [] };

/** The key presses that change the input line. */
export type EditorKey =
  | { readonly kind: "text"; readonly text: string }
  | {
      readonly kind:
        | "left"
        | "right"
        | "home"
        | "end"
        | "backspace"
        | "delete"
        | "kill-word"
        | "kill-line"
        | "kill-rest"
        | "up"
        | "down"
        | "tab";
    };

/** All key presses. enter: the line is complete. end-of-input: the shell ends. interrupt: the line is discarded. */
export type ShellKey = EditorKey | { readonly kind: "enter" } | { readonly kind: "end-of-input" } | { readonly kind: "interrupt" };

/** Returns the keys for a text that was typed or pasted. Line ends in any form become Enter, and tabs become blanks. */
export function keysOfText(text: string): readonly ShellKey[] {
  return text.split(/(\r\n|\r|\n)/).flatMap((part): readonly ShellKey[] => {
    if (part === "") return [];
    return [/^[\r\n]/.test(part) ? { kind: "enter" } : { kind: "text", text: part.replaceAll("\t", " ") }];
  });
}

/** Returns the state after a key. history: oldest line first. */
export function pressKey(state: EditorState, key: EditorKey, history: readonly string[], known: KnownNames): EditorState {
  const { text, cursor } = state;
  switch (key.kind) {
    case "text":
      return edit(state, text.slice(0, cursor) + key.text + text.slice(cursor), cursor + key.text.length);
    case "left":
      return { ...state, cursor: Math.max(0, cursor - 1), shown: [] };
    case "right":
      return { ...state, cursor: Math.min(text.length, cursor + 1), shown: [] };
    case "home":
      return { ...state, cursor: 0, shown: [] };
    case "end":
      return { ...state, cursor: text.length, shown: [] };
    case "backspace":
      return cursor === 0 ? state : edit(state, text.slice(0, cursor - 1) + text.slice(cursor), cursor - 1);
    case "delete":
      return edit(state, text.slice(0, cursor) + text.slice(cursor + 1), cursor);
    case "kill-word": {
      const kept = text.slice(0, cursor).replace(/\S*\s*$/, "");
      return edit(state, kept + text.slice(cursor), kept.length);
    }
    case "kill-line":
      return edit(state, text.slice(cursor), 0);
    case "kill-rest":
      return edit(state, text.slice(0, cursor), cursor);
    case "up":
      return recall(state, history, -1);
    case "down":
      return recall(state, history, 1);
    case "tab":
      return completeAt(state, complete(text, cursor, known));
    default: {
      const unreachable: never = key;
      return unreachable;
    }
  }
}

function edit(state: EditorState, text: string, cursor: number): EditorState {
  return { ...state, text, cursor, shown: [] };
}

function recall(state: EditorState, history: readonly string[], step: number): EditorState {
  const from = state.history_index < 0 ? history.length : state.history_index;
  const to = from + step;
  if (to < 0 || to > history.length) return state;
  const draft = from === history.length ? state.text : state.draft;
  const text = to === history.length ? draft : (history[to] ?? "");
  return { text, cursor: text.length, history_index: to === history.length ? -1 : to, draft, shown: [] };
}

/**
 * Completes the word at the cursor. A single candidate is inserted, followed by a blank or by what usually comes next. Of several candidates, their common
 * beginning is inserted, and all of them are shown.
 */
function completeAt(state: EditorState, { start, candidates }: Completion): EditorState {
  const [only] = candidates;
  if (only === undefined) return state;
  const rest = state.text.slice(state.cursor);
  if (candidates.length === 1) {
    const taken = state.text.slice(0, start) + only + (/[=:]$/.test(only) || rest.startsWith(" ") ? "" : " ");
    return edit(state, taken + rest, taken.length);
  }
  const prefix = commonPrefix(candidates);
  const typed = state.text.slice(start, state.cursor);
  const grown = state.text.slice(0, start) + (prefix.length > typed.length ? prefix : typed);
  return { ...state, text: grown + rest, cursor: grown.length, shown: candidates };
}
