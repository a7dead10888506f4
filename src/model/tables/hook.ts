// Hooks as objects: their attributes, with the refusals that PBS has for bad values, their contents, and which daemon runs
// the hooks of which event.
//
// I1. Every refusal here is PBSE 15136; qmgr then prints `hook error returned from server` (docs/reference/qmgr.md 5).
// I2. Every fail_action of a hook has an event to which it applies. The event provision is refused, because this release does
//     not provision vnodes.

import type { AttributeValue } from "../attribute.ts";
import { PBSE, Reject } from "../pbse.ts";
import { parseBoolean } from "../values/boolean.ts";
import { HOOK_ATTRIBUTES, HOOK_EVENTS } from "./hook-attributes.ts";

export type HookEvent = (typeof HOOK_EVENTS)[number];
export type HookLanguage = "python" | "javascript";

/** The script of a hook. content: the imported file in base64. */
export type HookScript = { readonly language: HookLanguage; readonly content: string };
/**
 * The configuration of a hook. suffix: the suffix of the imported file, for example `.json` ("" if it had none), so that the file that the hook gets has the same
 * suffix.
 */
export type HookConfig = { readonly suffix: string; readonly content: string };
/** A hook. order: its position in the order of creation. */
export type Hook = {
  readonly name: string;
  readonly order: number;
  attrs: HookAttrs;
  script: HookScript | null;
  config: HookConfig | null;
};
export type HookAttrs = {
  readonly type: string;
  readonly enabled: boolean;
  readonly event: readonly string[];
  readonly user: string;
  readonly alarm: number;
  readonly freq: number;
  readonly order: number;
  readonly debug: boolean;
  readonly fail_action: readonly string[];
};

/** The largest size of a script or configuration in bytes. Its base64 text must fit into a frame of a request (protocol/wire/limits.ts). */
export const HOOK_BYTES_MAX = 8 * 1024 * 1024;
const HOOK_NAME_LENGTH_MAX = 79;

/** Whether a mom runs the event. The server runs all other events. */
export const isMomEvent = (event: string): boolean => event.startsWith("exec");
/** Whether the event occurs every freq seconds. */
export const isPeriodic = (event: string): boolean => event === "periodic" || event === "exechost_periodic";

export const CONFIG_SUFFIXES = ["", ".ini", ".json", ".py", ".txt", ".xml"] as const;

const refuse = (text: string): Reject => new Reject(PBSE.HOOKERROR, text);

/** The attributes of a new hook. */
export function freshHook(): HookAttrs {
  return {
    type: "site",
    enabled: true,
    event: [],
    user: "pbsadmin",
    alarm: 30,
    freq: 120,
    order: 1,
    debug: false,
    fail_action: ["none"],
  };
}

export function checkHookName(name: string): void {
  if (name === "") throw refuse("no hook name was given");
  if (/^pbs/i.test(name)) throw refuse(`invalid hook name '${name}': hook names may not begin with "PBS"`);
  if (name.length > HOOK_NAME_LENGTH_MAX || !/^[A-Za-z][A-Za-z0-9_.-]*$/.test(name))
    throw refuse(`invalid hook name '${name}': a letter, then at most ${HOOK_NAME_LENGTH_MAX - 1} letters, digits, _, - or .`);
}

type Term = { readonly name: string; readonly op: "=" | "+=" | "-=" | "unset"; readonly value: string };

/** Returns the attributes after operations. If one of them is refused, with 15136 and the text of PBS, none is applied. */
export function alterHook(before: HookAttrs, terms: readonly Term[]): HookAttrs {
  let attrs = before;
  for (const term of terms) attrs = alterOne(attrs, term);
  checkFailAction(attrs);
  return attrs;
}

/** The attribute's name as its row spells it. */
export function hookAttributeName(name: string): keyof HookAttrs {
  const def = HOOK_ATTRIBUTES.byName(name);
  if (def === undefined || def.set === "pbs") throw refuse(`Undefined attribute  - ${name}`);
  return def.name as keyof HookAttrs;
}

function alterOne(attrs: HookAttrs, term: Term): HookAttrs {
  const name = hookAttributeName(term.name);
  if (term.op === "unset") return { ...attrs, [name]: freshHook()[name] };
  if (term.op !== "=" && name !== "event" && name !== "fail_action") throw refuse(`operator ${term.op} is not for the attribute ${name}`);
  return { ...attrs, [name]: newValue(attrs, name, term) };
}

function newValue(attrs: HookAttrs, name: keyof HookAttrs, { op, value }: Term): AttributeValue {
  switch (name) {
    case "type":
      if (value !== "site" && value !== "pbs") throw refuse(`invalid argument (${value}) to type. Should be "site"`);
      if (value === "pbs") throw refuse("a hook of type pbs comes with PBS: it cannot be made");
      return value;
    case "enabled":
    case "debug": {
      const flag = parseBoolean(value);
      if (flag === null) throw refuse(`unexpected value '${value}' must be (not case sensitive) true|t|y|1|false|f|n|0`);
      return flag;
    }
    case "user":
      if (value !== "pbsadmin" && value !== "pbsuser") throw refuse("user value of a hook must be pbsadmin,pbsuser");
      return value;
    case "alarm":
    case "freq":
      return wholeNumber(name, value, 1, Number.MAX_SAFE_INTEGER, `${name} value of a hook must be > 0`);
    case "order": {
      const [low, high] = attrs.type === "pbs" ? [-1000, 2000] : [1, 1000];
      const text = `order given (${value}) is outside the acceptable range of [${low}, ${high}] for type '${attrs.type}'.`;
      return wholeNumber(name, value, low, high, text);
    }
    case "event":
      return newEvents(attrs.event, op, value);
    case "fail_action":
      return newFailActions(attrs.fail_action, op, value);
    default: {
      const unreachable: never = name;
      return unreachable;
    }
  }
}

function wholeNumber(name: string, value: string, min: number, max: number, outside: string): number {
  if (!/^-?\d+$/.test(value)) throw refuse(`encountered a non-digit ${name} value: ${value}`);
  const number = Number(value);
  if (number < min || number > max) throw refuse(outside);
  return number;
}

/** The words of a list: `a,b` and `"a,b"` are two words; `""` is an empty list. */
const wordsOf = (value: string): string[] =>
  value
    .replace(/^(["'])(.*)\1$/, "$2")
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");

const EVENTS: ReadonlySet<string> = new Set(HOOK_EVENTS);

function newEvents(old: readonly string[], op: Term["op"], value: string): readonly string[] {
  const given = wordsOf(value);
  for (const word of given) {
    if (!EVENTS.has(word))
      throw refuse(`invalid argument (${word}) to event. Should be one or more of: ${HOOK_EVENTS.join(",")} or "" for no event.`);
    if (word === "provision") throw refuse("the event provision is not supported: vnodes are not provisioned by this release");
  }
  return combine(old, op, given, HOOK_EVENTS);
}

const FAIL_ACTIONS = ["none", "offline_vnodes", "clear_vnodes_upon_recovery", "scheduler_restart_cycle"] as const;

function newFailActions(old: readonly string[], op: Term["op"], value: string): readonly string[] {
  const given = wordsOf(value);
  for (const word of given) {
    if (!(FAIL_ACTIONS as readonly string[]).includes(word))
      throw refuse(`fail_action value of a hook must be ${FAIL_ACTIONS.map((action) => `"${action}"`).join(", ")}`);
  }
  const next = combine(
    old.filter((word) => word !== "none"),
    op,
    given.filter((word) => word !== "none"),
    FAIL_ACTIONS,
  );
  return next.length === 0 ? ["none"] : next;
}

/** Applies an operation to a list of words. The result has the order of `all`, in which PBS lists the words. */
function combine(old: readonly string[], op: Term["op"], given: readonly string[], all: readonly string[]): readonly string[] {
  const wanted = new Set(op === "=" ? given : op === "+=" ? [...old, ...given] : old.filter((word) => !given.includes(word)));
  return all.filter((word) => wanted.has(word));
}

/** The events to which each action applies (docs/reference/execution.md 9). */
const ACTS_FOR: { readonly [action: string]: readonly string[] } = {
  offline_vnodes: ["execjob_begin", "exechost_startup", "execjob_prologue"],
  clear_vnodes_upon_recovery: ["exechost_startup"],
  scheduler_restart_cycle: ["execjob_begin", "execjob_prologue"],
};

function checkFailAction(attrs: HookAttrs): void {
  for (const action of attrs.fail_action) {
    const events = ACTS_FOR[action];
    if (events === undefined || attrs.event.some((event) => events.includes(event))) continue;
    throw refuse(`Can't set hook fail_action value to '${action}': hook event must contain at least one of ${events.join(", ")}`);
  }
}

/** The attributes as `list hook` shows them: booleans in lower case, freq only for periodic events, and `""` for an empty list of events. */
export function hookAttrTexts(attrs: HookAttrs): { readonly [name: string]: string } {
  return {
    type: attrs.type,
    enabled: String(attrs.enabled),
    event: attrs.event.length === 0 ? '""' : attrs.event.join(","),
    user: attrs.user,
    alarm: String(attrs.alarm),
    ...(attrs.event.some(isPeriodic) ? { freq: String(attrs.freq) } : {}),
    order: String(attrs.order),
    debug: String(attrs.debug),
    fail_action: attrs.fail_action.join(","),
  };
}

/** The enabled hooks of an event in the order in which they run: sorted by their attribute `order`, then by creation. A hook without a script is left out. */
export function hooksOf(hooks: Iterable<Hook>, event: string): Hook[] {
  return [...hooks]
    .filter((hook) => hook.attrs.enabled && hook.script !== null && hook.attrs.event.includes(event))
    .sort((a, b) => a.attrs.order - b.attrs.order || a.order - b.order);
}

const CONTENT_TYPES: { readonly [type: string]: "config" | HookLanguage } = {
  "application/x-python": "python",
  "application/x-javascript": "javascript",
  "application/javascript": "javascript",
  "application/x-config": "config",
};

/** What a content type of `import hook` or `export hook` means: the configuration, or a script in this language. */
export function contentKind(type: string): "config" | HookLanguage {
  const kind = Object.hasOwn(CONTENT_TYPES, type) ? CONTENT_TYPES[type] : undefined;
  if (kind === undefined)
    throw refuse(`content-type must be application/x-python, application/x-javascript or application/x-config, not ${type}`);
  return kind;
}

/**
 * Makes one line of canonical base64 from base64 with or without line breaks. Refuses a text that is not base64 or is too
 * long.
 */
export function canonicalBase64(text: string): string {
  const plain = text.replace(/\s+/g, "");
  if (plain.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(plain)) throw refuse("the contents are not base64");
  if ((plain.length / 4) * 3 > HOOK_BYTES_MAX + 2) throw refuse(`the contents are longer than ${HOOK_BYTES_MAX} bytes`);
  return plain;
}
