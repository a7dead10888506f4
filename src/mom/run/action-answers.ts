// Decides what the end of a `$action` script means for the run it was about. Pure.

import type { ScriptEnd } from "../job/pelog.ts";
import { taken } from "./checkpoint.ts";
import { exitWithheld } from "./life.ts";
import { type Context, keyOf, save } from "./record.ts";
import type { Run, Step } from "./state.ts";
import { beginEnding, terminateScripted } from "./watch.ts";

/** Handles the end of a `$action` script. kind: what the script was asked to do. */
export function acted(cx: Context, run: Run, kind: Step["kind"], end: ScriptEnd): void {
  if (kind === "terminate") return terminateScripted(cx, run, end);
  if (kind !== "checkpoint") return;
  const { saved, leaving, text } = taken(cx, run, end);
  // If the run was ended meanwhile, it stays ended: a finished checkpoint does not undo that.
  if (leaving && saved && run.ending === null) beginEnding(cx, run, "checkpoint", 0);
  else if (leaving && run.phase.name === "running") {
    save(cx, run);
    cx.actions.push({ kind: "send", type: "mom-kept", data: { ...keyOf(run), why: "checkpoint", text } });
  }
  exitWithheld(cx, run);
}
