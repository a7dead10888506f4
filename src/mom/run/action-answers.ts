// The meaning of the end of a `$action` script for its run. Pure.

import type { ScriptEnd } from "../job/pelog.ts";
import { taken } from "./checkpoint.ts";
import { exitWithheld } from "./life.ts";
import { type Context, keyOf, save } from "./record.ts";
import type { Run, Step } from "./state.ts";
import { beginEnding, terminateScripted } from "./watch.ts";

/** A script of `$action` has ended. */
export function acted(cx: Context, run: Run, kind: Step["kind"], end: ScriptEnd): void {
  if (kind === "terminate") return terminateScripted(cx, run, end);
  if (kind !== "checkpoint") return;
  const { saved, leaving, text } = taken(cx, run, end);
  // The run was ended meanwhile: a checkpoint does not undo that.
  if (leaving && saved && run.ending === null) beginEnding(cx, run, "checkpoint", 0);
  else if (leaving && run.phase.name === "running") {
    save(cx, run);
    cx.actions.push({ kind: "send", type: "mom-kept", data: { ...keyOf(run), why: "checkpoint", text } });
  }
  exitWithheld(cx, run);
}
