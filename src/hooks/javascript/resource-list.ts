// A resource list of an object (Resource_List, resources_available, ...) as JavaScript hooks see it: one property for each
// resource. Part of the pbs module (pbs.ts, J2). The class is the handler of the proxy that hooks receive.

import type { HookValues } from "./values.ts";

export type ResourceTexts = { readonly [resource: string]: string };

export class HookResourceList implements ProxyHandler<object> {
  /** The object that the hook receives. */
  readonly proxy: object;
  /** Resources that the hook has set; null: the hook has unset the resource. */
  readonly changes: { [resource: string]: string | null } = {};
  readonly #name: string;
  readonly #held: { [resource: string]: string };
  readonly #types: { readonly [resource: string]: string };
  readonly #values: HookValues;
  readonly #checkWritable: () => void;

  /**
   * name: the attribute that has this list. held: the values as text, by resource. types: the types of all resources of the server. checkWritable: throws if
   * the hook may not set the attribute.
   */
  constructor(name: string, held: ResourceTexts, types: ResourceTexts, values: HookValues, checkWritable: () => void) {
    this.#name = name;
    this.#held = { ...held };
    this.#types = types;
    this.#values = values;
    this.#checkWritable = checkWritable;
    this.proxy = new Proxy<object>(Object.create(null), this);
  }

  /** Returns the names of the resources that have a value. */
  names(): readonly string[] {
    return Object.keys(this.#held);
  }

  /** Sets a resource. null or undefined unsets it. */
  assign(resource: string, value: unknown): void {
    this.#checkWritable();
    const type = this.#typeOf(resource);
    if (value === null || value === undefined) {
      delete this.#held[resource];
      this.changes[resource] = null;
    } else {
      const text = this.#values.toText(`${this.#name}.${resource}`, type, value);
      this.#held[resource] = text;
      this.changes[resource] = text;
    }
  }

  #typeOf(resource: string): string {
    const type = this.#types[resource];
    if (type === undefined && !Object.hasOwn(this.#held, resource)) throw new TypeError(`there is no resource '${resource}'`);
    return type ?? "string";
  }

  #text(): string {
    return Object.entries(this.#held)
      .map((entry) => entry.join("="))
      .join(",");
  }

  // --- traps of the proxy

  get(_: object, resource: string | symbol): unknown {
    if (typeof resource === "symbol") return undefined;
    if (resource === "toString") return () => this.#text();
    if (resource === "toJSON") return () => ({ ...this.#held });
    const type = this.#typeOf(resource);
    const text = Object.hasOwn(this.#held, resource) ? this.#held[resource] : undefined;
    return text === undefined ? null : this.#values.fromText(type, text);
  }

  set(_: object, resource: string | symbol, value: unknown): boolean {
    this.assign(String(resource), value);
    return true;
  }

  deleteProperty(_: object, resource: string | symbol): boolean {
    this.assign(String(resource), null);
    return true;
  }

  has(_: object, resource: string | symbol): boolean {
    return Object.hasOwn(this.#held, resource);
  }

  ownKeys(): string[] {
    return Object.keys(this.#held);
  }

  getOwnPropertyDescriptor(_: object, resource: string | symbol): PropertyDescriptor | undefined {
    if (!Object.hasOwn(this.#held, resource)) return undefined;
    return { value: this.#held[String(resource)], enumerable: true, configurable: true, writable: true };
  }
}
