// Makes the objects that a hook receives, with the properties and methods of their kind, and keeps what the hook requested
// through these methods. Part of the pbs module (pbs.ts, J2).

import type { HookObject, HookRequests } from "../run/hook-input.ts";
import type { HookObjectView, HookTypes } from "./object.ts";

export type ObjectsOptions = {
  readonly types: HookTypes;
  /** on an execution host: whether this is the job's first host */
  readonly first_host: boolean;
  readonly HookObjectView: typeof HookObjectView;
};

export class HookObjects {
  /** The actions on jobs that the hook requested, by the id of the job. */
  readonly wishes: { [job: string]: HookRequests["jobs"][string] } = {};
  readonly #options: ObjectsOptions;

  constructor(options: ObjectsOptions) {
    this.#options = options;
  }

  /** Makes an object. kind: job, resv, vnode or queue. writable: attributes that the hook may set. */
  of(kind: string, object: HookObject, writable?: readonly string[]): HookObjectView {
    return this.with(kind, object, this.#extra(kind, object.id), writable);
  }

  /** Makes an object as of() does. extra: the properties that are not attributes, in place of the properties of the object's kind. */
  with(kind: string, object: HookObject, extra: { readonly [name: string]: unknown }, writable?: readonly string[]): HookObjectView {
    const { types, HookObjectView } = this.#options;
    return new HookObjectView(types, { kind, object, extra, writable });
  }

  #extra(kind: string, id: string | null): { readonly [name: string]: unknown } {
    switch (kind) {
      case "job":
        return {
          id,
          rerun: () => void (this.wishes[String(id)] = "rerun"),
          delete: () => void (this.wishes[String(id)] = "delete"),
          in_ms_mom: () => this.#options.first_host,
        };
      case "vnode":
      case "queue":
        return { name: id };
      case "resv":
        return { resvid: id };
      default:
        return {};
    }
  }
}
