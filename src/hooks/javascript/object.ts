// A job, reservation, vnode, queue or the server as JavaScript hooks see it: one property for each attribute, and the values
// that the hook has set. Part of the pbs module (pbs.ts, J2). The class is the handler of the proxy that hooks receive.

import type { AttrChanges, HookObject } from "../run/hook-input.ts";
import type { HookResourceList, ResourceTexts } from "./resource-list.ts";
import type { HookValues } from "./values.ts";

/** The data that all objects have in common while one hook runs. */
export type HookTypes = {
  /** types of attributes by kind of object */
  readonly tables: { readonly [kind: string]: { readonly [name: string]: string } };
  /** types of all resources */
  readonly resources: ResourceTexts;
  readonly values: HookValues;
  readonly HookResourceList: typeof HookResourceList;
};

export type HookObjectOptions = {
  readonly kind: string;
  readonly object: HookObject;
  /** attributes that the hook may set */
  readonly writable?: readonly string[] | undefined;
  /** properties that are not attributes: the id and methods */
  readonly extra?: { readonly [name: string]: unknown };
};

export class HookObjectView implements ProxyHandler<object> {
  /** The object that the hook receives. */
  readonly proxy: object;
  readonly #types: HookTypes;
  readonly #kind: string;
  readonly #id: string | null;
  readonly #table: { readonly [name: string]: string };
  readonly #texts: { [name: string]: HookObject["attrs"][string] };
  readonly #writable: readonly string[];
  readonly #extra: { readonly [name: string]: unknown };
  readonly #changed: { [name: string]: string | null } = {};
  readonly #lists: { [name: string]: HookResourceList } = {};

  constructor(types: HookTypes, { kind, object, writable = [], extra = {} }: HookObjectOptions) {
    this.#types = types;
    this.#kind = kind;
    this.#id = object.id;
    this.#table = types.tables[kind] ?? {};
    this.#texts = { ...object.attrs };
    this.#writable = writable;
    this.#extra = extra;
    this.proxy = new Proxy<object>(Object.create(null), this);
  }

  /** Returns the attributes that the hook has set. */
  changes(): AttrChanges {
    const all: { [name: string]: AttrChanges[string] } = { ...this.#changed };
    for (const [name, list] of Object.entries(this.#lists)) if (Object.keys(list.changes).length > 0) all[name] = { ...list.changes };
    return all;
  }

  #typeOf(name: string): string {
    const type = this.#table[name];
    if (type === undefined && !Object.hasOwn(this.#texts, name)) throw new TypeError(`${this.#kind} has no attribute '${name}'`);
    return type ?? "string";
  }

  #checkWritable(name: string): void {
    if (!this.#writable.includes(name)) throw new TypeError(`${this.#kind} attribute '${name}' is readonly`);
  }

  #list(name: string): HookResourceList {
    const { HookResourceList, values, resources } = this.#types;
    const held = (this.#texts[name] ?? {}) as ResourceTexts;
    this.#lists[name] ??= new HookResourceList(name, held, resources, values, () => this.#checkWritable(name));
    return this.#lists[name];
  }

  #read(name: string): unknown {
    if (Object.hasOwn(this.#extra, name)) return this.#extra[name];
    if (name === "toString") return () => String(this.#id);
    if (name === "toJSON") return () => ({ id: this.#id, ...this.#texts });
    const type = this.#typeOf(name);
    if (type === "resource_list" || type === "entity_limit_res") return this.#list(name).proxy;
    const text = this.#texts[name];
    if (text === undefined) return null;
    return this.#types.values.fromText(type, Array.isArray(text) ? text.join(",") : (text as string));
  }

  #assign(name: string, value: unknown): void {
    if (Object.hasOwn(this.#extra, name)) throw new TypeError(`${this.#kind} attribute '${name}' is readonly`);
    const type = this.#typeOf(name);
    this.#checkWritable(name);
    if (type === "resource_list") {
      this.#assignList(this.#list(name), (value ?? {}) as { readonly [resource: string]: unknown });
    } else if (value === null || value === undefined) {
      delete this.#texts[name];
      this.#changed[name] = null;
    } else {
      const text = this.#types.values.toText(name, type, value);
      this.#texts[name] = text;
      this.#changed[name] = text;
    }
  }

  /** Assigns a whole resource list: resources that are not in `wanted` are unset. */
  #assignList(list: HookResourceList, wanted: { readonly [resource: string]: unknown }): void {
    if (wanted === list.proxy) return;
    for (const resource of list.names()) if (!(resource in wanted)) list.assign(resource, null);
    for (const resource of Object.keys(wanted)) list.assign(resource, wanted[resource]);
  }

  // --- traps of the proxy

  get(_: object, name: string | symbol): unknown {
    return typeof name === "symbol" ? undefined : this.#read(name);
  }

  set(_: object, name: string | symbol, value: unknown): boolean {
    this.#assign(String(name), value);
    return true;
  }

  deleteProperty(_: object, name: string | symbol): boolean {
    this.#assign(String(name), null);
    return true;
  }

  has(_: object, name: string | symbol): boolean {
    return Object.hasOwn(this.#table, name) || Object.hasOwn(this.#extra, name);
  }

  ownKeys(): string[] {
    return Object.keys(this.#texts);
  }

  getOwnPropertyDescriptor(_: object, name: string | symbol): PropertyDescriptor | undefined {
    if (!Object.hasOwn(this.#texts, name)) return undefined;
    return { value: this.#texts[String(name)], enumerable: true, configurable: true, writable: true };
  }
}
