// Compares the requests of a dump with the configuration that they have made: each one was taken, changed or refused. Pure.

/** What became of one request. says: for `changed` and `refused`, what is different or why. */
export type Verdict = {
  readonly line: number;
  readonly text: string;
  readonly outcome: "taken" | "changed" | "refused";
  readonly says: string;
};

/**
 * A request that was carried out. sent: the request in the form in which qmgr got it; null: it was left out. note: why another form was sent, or none; "": the
 * request means the same. ok: qmgr accepted it. text: what qmgr printed.
 */
export type CarriedOut = {
  readonly line: number;
  readonly request: string;
  readonly sent: string | null;
  readonly note: string;
  readonly ok: boolean;
  readonly text: string;
};

/** One setting, such as `set queue workq enabled = True`. subject: all words before the operator */
type Setting = { readonly subject: string; readonly value: string };

const SETTING = /^(?:set|s)\s+(\S+)\s+(.*?)\s*(?:\+|-)?=\s*(.*)$/i;
/** Settings that name an object and an attribute have two words before the operator; those of the server have one. */
const QUOTED = /^(["'])(.*)\1$/s;

function settingOf(request: string): Setting | null {
  const match = SETTING.exec(request);
  if (match === null) return null;
  const [, object = "", words = "", value = ""] = match;
  const subject = `${object.toLowerCase()} ${words.split(/\s+/).join(" ")}`;
  return { subject, value: QUOTED.exec(value)?.[2] ?? value };
}

const isState = ({ subject }: Setting): boolean => /^n\S* \S+ state$/.test(subject);

const MOMENTARY = "moms and jobs make this state, so it is not taken over";

/**
 * Returns a request in the form in which it can be sent, and the note of CarriedOut. Dumps of real sites have states of vnodes that no administrator has set.
 */
export function prepared(request: string): { readonly sent: string | null; readonly note: string } {
  const setting = settingOf(request);
  if (setting === null || !isState(setting)) return { sent: request, note: "" };
  const states = setting.value.split(",").map((state) => state.trim());
  if (states.every((state) => state === "offline")) return { sent: request, note: "" };
  if (!states.includes("offline")) return { sent: null, note: MOMENTARY };
  return { sent: `set ${setting.subject} = offline`, note: "only offline is taken over" };
}

/** Returns the request with its value in quotation marks, if the value has blanks and no quotation marks; otherwise null. Some versions of qmgr print such values. */
export function quoted(request: string): string | null {
  const setting = settingOf(request);
  if (setting === null || !/\s/.test(setting.value) || /["']/.test(request)) return null;
  return `${request.slice(0, request.length - setting.value.length)}"${setting.value}"`;
}

/**
 * Judges the requests. printed: the lines of the configuration after all requests. A request that qmgr accepted, but whose setting the configuration does not
 * show, counts as changed. The values of a list may come in another order and with other operators.
 */
export function judge(requests: readonly CarriedOut[], printed: readonly string[]): readonly Verdict[] {
  const values = new Map<string, Set<string>>();
  for (const line of printed) {
    const setting = settingOf(line);
    if (setting === null) continue;
    const known = values.get(setting.subject) ?? new Set();
    values.set(setting.subject, known.add(setting.value));
  }
  return requests.map(({ line, request, sent, note, ok, text }): Verdict => {
    if (!ok) return { line, text: request, outcome: "refused", says: reasonOf(text) };
    if (note !== "") return { line, text: request, outcome: "changed", says: note };
    const setting = sent === null ? null : settingOf(sent);
    // The configuration shows no state of a vnode whose mom has not connected yet.
    if (setting === null || isState(setting)) return { line, text: request, outcome: "taken", says: "" };
    const now = values.get(setting.subject);
    if (now === undefined) return { line, text: request, outcome: "changed", says: "qmgr accepts this setting, but does not keep it" };
    if (now.has(setting.value) || setting.value.split(",").every((part) => now.has(part.trim())))
      return { line, text: request, outcome: "taken", says: "" };
    return { line, text: request, outcome: "changed", says: `is now ${[...now].join(", ")}` };
  });
}

/** The last line of qmgr's message is a number; the line before gives the reason in words, if there is one. */
function reasonOf(text: string): string {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const words = lines.filter((line) => !/^qmgr: Error \(\d+\) returned from server$/.test(line) && !/^\s*\^$/.test(line));
  return (words.length > 0 ? words : lines)
    .map((line) =>
      line
        .replace(/^qmgr obj=\S* svr=\S*: /, "")
        .replace(/^qmgr: /, "")
        .trimEnd(),
    )
    .join(": ");
}

/** Counts the outcomes. */
export function countOutcomes(verdicts: readonly Verdict[]): { readonly [outcome in Verdict["outcome"]]: number } {
  const count = (outcome: Verdict["outcome"]): number => verdicts.filter((verdict) => verdict.outcome === outcome).length;
  return { taken: count("taken"), changed: count("changed"), refused: count("refused") };
}
