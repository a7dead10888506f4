// qmgr create|delete|set|unset hook and pbshook, import and export (docs/reference/qmgr.md 9, docs/reference/attributes.md 9). Only root on the server host
// may do this.
//
// I1. Hooks of type pbs (object pbshook) are part of a release. This release has none, so there is never a pbshook.

import { PBSE, Reject } from "#model/pbse.ts";
import {
  alterHook,
  CONFIG_SUFFIXES,
  canonicalBase64,
  checkHookName,
  contentKind,
  freshHook,
  type Hook,
  type HookAttrs,
  hookAttributeName,
  hookAttrTexts,
} from "#model/tables/hook.ts";
import type { ExportHookRequest, ImportHookRequest, ManagerRequest, StatusItem, StatusRequest } from "#protocol/messages.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type LoggedTerm, type LogTarget, logChanged, logCreated, logDeleted } from "../../attributes/manager-log.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";

/** Refuses everybody but root on the server host with 15136. */
function checkHookAccess(tx: Transaction): void {
  const { user, host, root } = tx.who;
  if (!root) throw new Reject(PBSE.HOOKERROR, `${user}@${host} is unauthorized to access hooks data from server ${tx.config.host}`);
}

export function manageHook(tx: Transaction, request: ManagerRequest): Answer {
  checkHookAccess(tx);
  const { verb, name } = request;
  switch (verb) {
    case "create":
      return createHook(tx, request);
    case "delete":
      for (const hook of hooksNamed(tx, request.object, name)) {
        logDeleted(tx, target(hook.name));
        tx.apply({ kind: "hook-deleted", name: hook.name });
      }
      return {};
    case "set":
    case "unset":
      return changeHooks(tx, request, verb);
    default: {
      const unreachable: never = verb;
      return unreachable;
    }
  }
}

function createHook(tx: Transaction, { object, name, attrs: ops }: ManagerRequest): Answer {
  if (object === "pbshook") throw refuse("pbshooks cannot be created");
  checkHookName(name);
  if (tx.state.hooks.has(name)) throw refuse(`hook name '${name}' already registered, try another name`);
  const attrs = alterHook(freshHook(), ops);
  logCreated(tx, target(name), terms(ops));
  tx.apply({ kind: "hook-put", name, attrs, script: null, config: null });
  return {};
}

function changeHooks(tx: Transaction, { object, name, attrs: ops }: ManagerRequest, verb: "set" | "unset"): Answer {
  const changed = hooksNamed(tx, object, name).map((hook): [Hook, HookAttrs] => [hook, alterHook(hook.attrs, ops)]);
  for (const [hook, attrs] of changed) {
    logChanged(tx, target(hook.name), verb, terms(ops));
    tx.apply({ kind: "hook-put", name: hook.name, attrs, script: hook.script, config: hook.config });
  }
  return {};
}

/** The hook with this name, or all hooks for "". Refuses an unknown name with the text of PBS. */
function hooksNamed(tx: Transaction, object: ManagerRequest["object"], name: string): Hook[] {
  const hooks = [...tx.state.hooks.values()].filter((hook) => (hook.attrs.type === "pbs") === (object === "pbshook"));
  if (name === "") return hooks;
  const hook = hooks.find((each) => each.name === name);
  if (hook === undefined) throw refuse(`${name} does not exist!`);
  return [hook];
}

/** Imports the script or configuration of a hook. If the hook had one already, the reply says that it was overwritten. */
export function importHook(tx: Transaction, request: ImportHookRequest): Answer {
  checkHookAccess(tx);
  const [hook] = hooksNamed(tx, request.object, request.hook === "" ? " " : request.hook) as [Hook];
  const kind = contentKind(request.content_type);
  if (request.encoding !== "default" && request.encoding !== "base64")
    throw refuse(`content-encoding must be default or base64, not ${request.encoding}`);
  const content = canonicalBase64(request.content);
  if (kind === "config" && !(CONFIG_SUFFIXES as readonly string[]).includes(request.suffix))
    throw refuse(`${request.suffix} is no suffix of a hook's configuration file: none, ${CONFIG_SUFFIXES.slice(1).join(", ")}`);
  const was_there = kind === "config" ? hook.config !== null : hook.script !== null;
  logHook(tx, hook.name, `${request.content_type} imported at request of ${tx.who.user}@${tx.who.host}`);
  tx.apply({
    kind: "hook-put",
    name: hook.name,
    attrs: hook.attrs,
    script: kind === "config" ? hook.script : { language: kind, content },
    config: kind === "config" ? { suffix: request.suffix, content } : hook.config,
  });
  return was_there ? { text: `hook '${hook.name}' contents overwritten` } : {};
}

export function exportHook(tx: Transaction, request: ExportHookRequest): Answer {
  checkHookAccess(tx);
  const [hook] = hooksNamed(tx, request.object, request.hook === "" ? " " : request.hook) as [Hook];
  const kind = contentKind(request.content_type);
  // If a hook has no configuration, an empty one is exported, so that every export can be imported again.
  if (kind === "config") return { value: { content: hook.config?.content ?? "" } };
  const found = hook.script?.language === kind ? hook.script : null;
  if (found === null) throw refuse(`hook '${hook.name}' has no contents of type ${request.content_type}`);
  return { value: { content: found.content } };
}

/** The status of hooks, for qmgr list and print. */
export function hookStatus(tx: Transaction, { object, ids, attrs }: StatusRequest): StatusItem[] {
  checkHookAccess(tx);
  const names = attrs === undefined ? null : new Set<string>(attrs.map(hookAttributeName));
  const all = hooksNamed(tx, object === "pbshook" ? "pbshook" : "hook", "");
  const wanted = ids.length === 0 ? all : ids.map((id) => all.find(({ name }) => name === id) ?? id);
  return wanted.map((hook) => {
    if (typeof hook === "string") return { id: hook, code: PBSE.HOOKERROR, text: "hook not found" };
    const shown = Object.entries(hookAttrTexts(hook.attrs)).filter(([name]) => names === null || names.has(name));
    return { id: hook.name, attrs: Object.fromEntries(shown) };
  });
}

const refuse = (text: string): Reject => new Reject(PBSE.HOOKERROR, text);
const target = (name: string): LogTarget => ({ class: "Hook", object: name });
const terms = (ops: ManagerRequest["attrs"]): LoggedTerm[] =>
  ops.map(({ name, op, value }) => {
    const attribute = hookAttributeName(name);
    return { name: attribute, op, value, boolean: attribute === "enabled" || attribute === "debug" };
  });

function logHook(tx: Transaction, name: string, text: string, event: number = LOG_EVENT.ADMIN): void {
  tx.log({ event, class: "Hook", object: name, text });
}
