// pbs.event() of JavaScript hooks: the event's objects and fields, and the changes that the hook made to them. Part of the
// pbs module (pbs.ts, J2). The class is the handler of the proxy that hooks receive.

import type { HookChanges, HookInput, HookObject, HookRun, ObjectChanges } from "../run/hook-input.ts";
import type { HookObjectView } from "./object.ts";
import type { HookObjects } from "./objects.ts";
import type { HookVerdict } from "./verdict.ts";

/** The settings of the hook itself. */
export type HookFacts = Pick<HookRun, "name" | "type" | "alarm" | "freq" | "order" | "user" | "debug" | "fail_action">;

/** The fields that a hook may set in an execjob_launch event. A hook may set values of any type. */
type Launch = { progname?: unknown; argv?: unknown; env?: unknown };

export class HookEvent implements ProxyHandler<object> {
  /** The object that the hook receives as pbs.event(). */
  readonly proxy: object;
  readonly #input: HookInput;
  readonly #single: { [name: string]: HookObjectView } = {};
  readonly #lists: { [name: string]: { [id: string]: HookObjectView } } = {};
  readonly #fields: { [name: string]: unknown };
  readonly #launch: Launch = {};

  constructor(input: HookInput, facts: HookFacts, objects: HookObjects, verdict: HookVerdict) {
    this.#input = input;
    this.#fields = {
      type: input.event,
      requestor: input.requestor,
      requestor_host: input.requestor_host,
      hook_name: facts.name,
      hook_type: facts.type,
      alarm: facts.alarm,
      freq: facts.freq,
      order: facts.order,
      user: facts.user,
      debug: facts.debug,
      fail_action: facts.fail_action.join(","),
      accept: () => verdict.accept(),
      reject: (message?: unknown, code?: unknown) => verdict.reject(message, code),
    };
    this.#addObjects(objects);
    this.#addLists(objects);
    if (input.src_queue !== undefined) this.#fields["src_queue"] = objects.of("queue", input.src_queue).proxy;
    for (const name of ["management", "pid"] as const) if (input[name] !== undefined) this.#fields[name] = input[name];
    if (input.progname !== undefined) this.#launch.progname = input.progname;
    if (input.argv !== undefined) this.#launch.argv = [...input.argv];
    if (input.env !== undefined) this.#launch.env = { ...input.env };
    this.proxy = new Proxy<object>(Object.create(null), this);
  }

  /** Adds the objects of the event, and the objects with their original values (job_o, resv_o, vnode_o). */
  #addObjects(objects: HookObjects): void {
    for (const kind of ["job", "resv", "vnode"] as const) {
      const { [kind]: now, [`${kind}_o` as const]: before } = this.#input;
      if (now !== undefined) {
        const view = objects.of(kind, now, this.#input.writable[kind]);
        this.#single[kind] = view;
        this.#fields[kind] = view.proxy;
      }
      if (before !== undefined) this.#fields[`${kind}_o`] = objects.of(kind, before).proxy;
    }
  }

  #addLists(objects: HookObjects): void {
    for (const kind of ["vnode", "job", "resv"] as const) {
      const name = `${kind}_list` as const;
      const given: readonly HookObject[] | undefined = this.#input[name];
      if (given === undefined) continue;
      const views = given.map((object) => [String(object.id), objects.of(kind, object, this.#input.writable[kind])] as const);
      this.#lists[name] = Object.fromEntries(views);
      this.#fields[name] = Object.fromEntries(views.map(([id, view]) => [id, view.proxy]));
    }
  }

  /** Returns the hook's changes. */
  changes(): HookChanges {
    const changes: { -readonly [K in keyof HookChanges]: HookChanges[K] } = {};
    for (const name of ["job", "resv"] as const) {
      const made = this.#single[name]?.changes() ?? {};
      if (Object.keys(made).length > 0) changes[name] = made;
    }
    for (const name of ["vnode_list", "job_list"] as const) {
      const made = this.#changesOfList(name);
      if (Object.keys(made).length > 0) changes[name] = made;
    }
    const { progname, argv, env } = this.#launch;
    const given = this.#input;
    if (progname !== given.progname) changes.progname = String(progname);
    if (argv !== undefined && JSON.stringify(argv) !== JSON.stringify(given.argv)) changes.argv = (argv as unknown[]).map(String);
    if (env !== undefined && JSON.stringify(env) !== JSON.stringify(given.env))
      changes.env = Object.fromEntries(Object.entries(env as object).map(([name, value]) => [name, String(value)]));
    return changes;
  }

  #changesOfList(name: string): ObjectChanges {
    return Object.fromEntries(
      Object.entries(this.#lists[name] ?? {})
        .map(([id, object]) => [id, object.changes()] as const)
        .filter(([, made]) => Object.keys(made).length > 0),
    );
  }

  // --- traps of the proxy

  get(_: object, name: string | symbol): unknown {
    if (typeof name === "symbol") return undefined;
    if (this.#isLaunch(name)) return this.#launch[name];
    if (!Object.hasOwn(this.#fields, name)) throw new TypeError(`event ${this.#input.event} has no attribute '${name}'`);
    return this.#fields[name];
  }

  set(_: object, name: string | symbol, value: unknown): boolean {
    if (!this.#isLaunch(name)) throw new TypeError(`event attribute '${String(name)}' is readonly`);
    this.#launch[name] = value;
    return true;
  }

  has(_: object, name: string | symbol): boolean {
    return this.#isLaunch(name) || Object.hasOwn(this.#fields, name);
  }

  #isLaunch(name: string | symbol): name is keyof Launch {
    return Object.hasOwn(this.#launch, name);
  }
}
