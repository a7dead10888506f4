// `$action` of mom_priv/config (docs/reference/execution.md 5): scripts of a site that replace actions of the mom. Pure.
//
// A1. No shell reads the line: it is split at blanks, and each word is one argument, whatever characters it contains.

/** The actions that a script can replace. For multinodebusy, only `requeue` is possible. */
const ACTIONS = ["terminate", "checkpoint", "checkpoint_abort", "restart"] as const;
export type ActionName = (typeof ACTIONS)[number];

/**
 * A script of `$action`. timeout_s 0: the line sets no time limit (see ACTION_S_MAX). words: program and arguments, in which `%jobid` and the like stand for
 * values.
 */
export type ActionScript = { readonly timeout_s: number; readonly words: readonly string[] };
export type Actions = { readonly [A in ActionName]?: ActionScript };

/** The values that arguments of a script may stand for: `%jobid`, `%sid`, ... */
export type ActionFacts = {
  readonly jobid: string;
  readonly sid: number;
  readonly uid: number;
  readonly gid: number;
  readonly login: string;
  readonly owner: string;
  readonly auxid: string;
  /** directory of the checkpoint */
  readonly path: string;
};

/** Time limit of a script whose line sets none. Without a limit, a job that nobody can end would keep its node for ever. */
const ACTION_S_MAX = 86_400;

export type ActionLine =
  | { readonly kind: "script"; readonly action: ActionName; readonly script: ActionScript }
  | { readonly kind: "multinodebusy" }
  | { readonly kind: "wrong"; readonly text: string };

/** Parses the words after `$action`: `checkpoint 60 !/site/checkpoint %jobid %path`, `multinodebusy 0 requeue`. */
export function parseAction([name = "", timeout = "", ...words]: readonly string[]): ActionLine {
  const wrong = (text: string): ActionLine => ({ kind: "wrong", text });
  if (!/^\d{1,9}$/.test(timeout)) return wrong("must be ACTION TIMEOUT !SCRIPT ARGUMENTS, with a timeout in seconds");
  if (name === "multinodebusy")
    return words.join(" ") === "requeue" ? { kind: "multinodebusy" } : wrong("multinodebusy knows only requeue");
  const action = ACTIONS.find((known) => known === name);
  if (action === undefined) return wrong(`action must be one of ${ACTIONS.join(", ")}, multinodebusy`);
  const [first = "", ...rest] = words;
  const program = first === "!" ? rest.shift() : first.slice(1);
  if (!first.startsWith("!") || program === undefined || !program.startsWith("/"))
    return wrong(`${name} needs the absolute path of a script after !`);
  const unknown = rest.find((word) => word.startsWith("%") && !Object.hasOwn(EXAMPLE, word.slice(1)));
  if (unknown !== undefined)
    return wrong(
      `${unknown} is none of ${Object.keys(EXAMPLE)
        .map((key) => `%${key}`)
        .join(" ")}`,
    );
  return { kind: "script", action, script: { timeout_s: Number(timeout), words: [program, ...rest] } };
}

const EXAMPLE: ActionFacts = { jobid: "", sid: 0, uid: 0, gid: 0, login: "", owner: "", auxid: "", path: "" };

/** Returns program and arguments with the values for one job. */
export function actionCommand({ words }: ActionScript, facts: ActionFacts): readonly string[] {
  return words.map((word, at) => (at > 0 && word.startsWith("%") ? String(facts[word.slice(1) as keyof ActionFacts]) : word));
}

/** Returns the seconds after which the mom kills the script. */
export const actionLimit_s = ({ timeout_s }: ActionScript): number => (timeout_s === 0 ? ACTION_S_MAX : timeout_s);
