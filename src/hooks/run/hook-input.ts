// The input of a hook and its outcome, as server and mom use them. Values travel as PBS's texts in both directions. The pbs
// modules of both languages convert them to typed values, and the caller parses the returned texts again. Pure.
//
// I1. No data of a hook is trusted: readAnswer accepts any JSON and always returns a valid outcome.

import type { HookEvent, HookLanguage } from "#model/tables/hook.ts";
import type { WireAttrs } from "#protocol/messages.ts";
import { isRecord } from "#support/guards.ts";

/** An object as a hook sees it. */
export type HookObject = { readonly id: string | null; readonly attrs: WireAttrs };

/** What a hook gets from pbs.event(), without the settings of the hook itself. If an object is absent, the event does not have it. */
export type HookInput = {
  readonly event: HookEvent;
  readonly requestor: string;
  readonly requestor_host: string;
  /** name of the server, and name of the natural vnode of this host */
  readonly server: string;
  readonly node: string;
  readonly job?: HookObject;
  readonly job_o?: HookObject;
  readonly resv?: HookObject;
  readonly resv_o?: HookObject;
  readonly vnode?: HookObject;
  readonly vnode_o?: HookObject;
  readonly src_queue?: HookObject;
  readonly vnode_list?: readonly HookObject[];
  readonly job_list?: readonly HookObject[];
  readonly resv_list?: readonly HookObject[];
  readonly management?: { readonly [name: string]: unknown };
  readonly progname?: string;
  readonly argv?: readonly string[];
  readonly env?: { readonly [name: string]: string };
  readonly pid?: number;
  /** on an execution host: whether it is the job's first host */
  readonly first_host?: boolean;
  /** attributes that the hook may set, by kind of object */
  readonly writable: { readonly job?: readonly string[]; readonly resv?: readonly string[]; readonly vnode?: readonly string[] };
  /** true: the hook's changes are applied even if the hook rejects (event runjob) */
  readonly keep_rejected?: boolean;
};

/** Changed attributes: the new text, or null if the attribute is unset. For a resource list: the new text, or null, of each changed resource. */
export type AttrChanges = { readonly [name: string]: string | null | { readonly [resource: string]: string | null } };
export type ObjectChanges = { readonly [id: string]: AttrChanges };
export type HookChanges = {
  readonly job?: AttrChanges;
  readonly resv?: AttrChanges;
  readonly vnode_list?: ObjectChanges;
  readonly job_list?: ObjectChanges;
  readonly progname?: string;
  readonly argv?: readonly string[];
  readonly env?: { readonly [name: string]: string };
};
/** What the hook requested by calling methods. jobs: requested actions by job id. reboot: the command; "": the system's own command. */
export type HookRequests = {
  readonly jobs: { readonly [id: string]: "rerun" | "delete" };
  readonly restart_cycle: boolean;
  readonly reboot: string | null;
};
/** A log message of a hook. job null: it is logged under the name of the hook. level: event bits of the log. */
export type HookLog = { readonly level: number; readonly job: string | null; readonly text: string };

export type HookOutcome = { readonly logs: readonly HookLog[] } & (
  | { readonly kind: "accept"; readonly changes: HookChanges; readonly requests: HookRequests }
  | { readonly kind: "reject"; readonly message: string | null; readonly changes: HookChanges; readonly requests: HookRequests }
  | { readonly kind: "error"; readonly text: string }
  | { readonly kind: "alarm" }
);

/** What a daemon passes to its hook runner to run a hook. */
export type HookRun = {
  readonly name: string;
  readonly type: string;
  readonly alarm: number;
  readonly freq: number;
  readonly order: number;
  readonly user: string;
  readonly debug: boolean;
  readonly fail_action: readonly string[];
  readonly script: { readonly language: HookLanguage; readonly content: string };
  readonly config: { readonly suffix: string; readonly content: string } | null;
  readonly input: HookInput;
  /** types of all resources by name */
  readonly resources: { readonly [name: string]: string };
};

export const NO_REQUESTS: HookRequests = { jobs: {}, restart_cycle: false, reboot: null };

const TEXT_MAX = 64 * 1024;
const LOGS_MAX = 1000;
const OUTPUT_LINES_MAX = 50;
const DEBUG2 = 0x0100;

/** Converts the answer of a hook host, whatever it contains, to an outcome. */
export function readAnswer(answer: unknown): HookOutcome {
  if (!isRecord(answer)) return { kind: "error", text: "the hook's answer is none", logs: [] };
  const logs = [...readLogs(answer["logs"]), ...outputLogs(answer["output"])];
  switch (answer["verdict"]) {
    case "stopped":
      return { kind: "alarm", logs };
    case "accept":
    case "reject": {
      const changes = readChanges(answer["changes"] ?? {});
      if (changes === null) return { kind: "error", text: "the hook's answer has changes that are none", logs };
      const common = { changes, requests: readRequests(answer["requests"]), logs };
      if (answer["verdict"] === "accept") return { kind: "accept", ...common };
      return { kind: "reject", message: typeof answer["message"] === "string" ? oneText(answer["message"]) : null, ...common };
    }
    default:
      return { kind: "error", text: typeof answer["error"] === "string" ? oneText(answer["error"]) : "the hook gave no answer", logs };
  }
}

function readLogs(value: unknown): HookLog[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, LOGS_MAX).flatMap((entry: unknown) => {
    if (!isRecord(entry) || typeof entry["text"] !== "string") return [];
    const level = Number.isSafeInteger(entry["level"]) ? (entry["level"] as number) & 0xffff : DEBUG2;
    return [{ level, job: typeof entry["job"] === "string" ? entry["job"].slice(0, 200) : null, text: oneLine(entry["text"]) }];
  });
}

/** Returns what the hook wrote to standard output and standard error, as log lines. */
function outputLogs(value: unknown): HookLog[] {
  if (typeof value !== "string") return [];
  const lines = value.split("\n").filter((line) => line.trim() !== "");
  return lines.slice(0, OUTPUT_LINES_MAX).map((line) => ({ level: DEBUG2, job: null, text: `output: ${oneLine(line)}` }));
}

function readRequests(value: unknown): HookRequests {
  if (!isRecord(value)) return NO_REQUESTS;
  return {
    jobs: Object.fromEntries(
      Object.entries(isRecord(value["jobs"]) ? value["jobs"] : {}).filter(([, wish]) => wish === "rerun" || wish === "delete"),
    ) as HookRequests["jobs"],
    restart_cycle: value["restart_cycle"] === true,
    reboot: typeof value["reboot"] === "string" ? oneText(value["reboot"]) : null,
  };
}

/** Reads the changes in an answer. Returns null if the value does not have their form. */
function readChanges(value: unknown): HookChanges | null {
  if (!isRecord(value)) return null;
  const changes: { -readonly [K in keyof HookChanges]: HookChanges[K] } = {};
  for (const [name, given] of Object.entries(value)) {
    switch (name) {
      case "job":
      case "resv":
        if (!isAttrChanges(given)) return null;
        changes[name] = given;
        break;
      case "vnode_list":
      case "job_list":
        if (!isObjectChanges(given)) return null;
        changes[name] = given;
        break;
      case "progname":
        if (typeof given !== "string") return null;
        changes.progname = given;
        break;
      case "argv":
        if (!Array.isArray(given) || !given.every((word) => typeof word === "string")) return null;
        changes.argv = given;
        break;
      case "env":
        if (!isRecord(given) || !Object.values(given).every((text) => typeof text === "string")) return null;
        changes.env = given as { readonly [name: string]: string };
        break;
      default:
        return null;
    }
  }
  return changes;
}

const isText = (value: unknown): value is string | null => value === null || typeof value === "string";
export const isAttrChanges = (value: unknown): value is AttrChanges =>
  isRecord(value) && Object.values(value).every((given) => isText(given) || (isRecord(given) && Object.values(given).every(isText)));
export const isObjectChanges = (value: unknown): value is ObjectChanges => isRecord(value) && Object.values(value).every(isAttrChanges);

const oneText = (text: string): string => text.slice(0, TEXT_MAX);
/** Makes a text one line for the log: line breaks become blanks. */
const oneLine = (text: string): string => oneText(text).replace(/[\r\n]+/g, " ");
