// Applies the changes of one hook to the input of the next, and adds them to the changes of the whole chain. Pure.

import type { WireAttrs } from "#protocol/messages.ts";
import { present } from "#support/assert.ts";
import type { AttrChanges, HookChanges, HookInput, HookObject, ObjectChanges } from "./hook-input.ts";

/** Returns the input after the changes of a hook, and all changes so far. */
export function withChanges(
  input: HookInput,
  before: HookChanges,
  made: HookChanges,
): { readonly input: HookInput; readonly changes: HookChanges } {
  const changes: { -readonly [K in keyof HookChanges]: HookChanges[K] } = { ...before };
  const next: { -readonly [K in keyof HookInput]: HookInput[K] } = { ...input };
  for (const kind of ["job", "resv"] as const) {
    const given = made[kind];
    if (given === undefined) continue;
    changes[kind] = mergeAttrs(before[kind], given);
    const object = input[kind];
    if (object !== undefined) next[kind] = changedObject(object, given);
  }
  for (const list of ["vnode_list", "job_list"] as const) {
    const given = made[list];
    if (given === undefined) continue;
    changes[list] = mergeObjects(before[list], given);
    next[list] = (input[list] ?? []).map((object) =>
      object.id !== null && Object.hasOwn(given, object.id) ? changedObject(object, present(given[object.id], object.id)) : object,
    );
  }
  if (made.progname !== undefined) changes.progname = next.progname = made.progname;
  if (made.argv !== undefined) changes.argv = next.argv = made.argv;
  if (made.env !== undefined) changes.env = next.env = made.env;
  return { input: next, changes };
}

function mergeObjects(before: ObjectChanges | undefined, made: ObjectChanges): ObjectChanges {
  const merged: { [id: string]: AttrChanges } = { ...before };
  for (const [id, attrs] of Object.entries(made)) merged[id] = mergeAttrs(before?.[id], attrs);
  return merged;
}

function mergeAttrs(before: AttrChanges | undefined, made: AttrChanges): AttrChanges {
  const merged: { [name: string]: AttrChanges[string] } = { ...before };
  for (const [name, value] of Object.entries(made)) {
    const old = merged[name];
    merged[name] = isList(value) && isList(old) ? { ...old, ...value } : value;
  }
  return merged;
}

const isList = (value: unknown): value is { readonly [resource: string]: string | null } => typeof value === "object" && value !== null;

/** Returns the object with the changes applied. */
export function changedObject({ id, attrs }: HookObject, changes: AttrChanges): HookObject {
  const next: { [name: string]: WireAttrs[string] } = { ...attrs };
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete next[name];
    else if (!isList(value)) next[name] = value;
    else {
      const old = next[name];
      const list = { ...(typeof old === "object" && !Array.isArray(old) ? (old as { readonly [resource: string]: string }) : {}) };
      for (const [resource, text] of Object.entries(value)) {
        if (text === null) delete list[resource];
        else list[resource] = text;
      }
      next[name] = list;
    }
  }
  return { id, attrs: next };
}
