// pbs.server() of JavaScript hooks: objects of the server, each queried when the hook asks for it. Part of the pbs module (pbs.ts, J2).

import type { HookObject } from "../run/hook-input.ts";
import type { HookObjects } from "./objects.ts";

export class HookServer {
  /** Whether the hook requested a scheduling cycle. */
  wants_cycle = false;
  readonly #name: string;
  readonly #objects: HookObjects;
  readonly #ask: (question: string) => string;

  /** name: name of the server. ask: sends a query as JSON and returns the result as JSON. */
  constructor(name: string, objects: HookObjects, ask: (question: string) => string) {
    this.#name = name;
    this.#objects = objects;
    this.#ask = ask;
  }

  /** Returns the server as the hook sees it. Throws if the daemon gives no result. */
  view(): object {
    const [found] = this.#query("server", "");
    const methods = {
      name: this.#name,
      job: (id: unknown) => this.#one("job", id),
      jobs: () => this.#all("job"),
      queue: (name: unknown) => this.#one("queue", name),
      queues: () => this.#all("queue"),
      vnode: (name: unknown) => this.#one("vnode", name),
      vnodes: () => this.#all("vnode"),
      resv: (id: unknown) => this.#one("resv", id),
      resvs: () => this.#all("resv"),
      scheduler_restart_cycle: () => void (this.wants_cycle = true),
    };
    return this.#objects.with("server", found ?? { id: this.#name, attrs: {} }, methods).proxy;
  }

  #one(kind: string, name: unknown): object | null {
    const [found] = this.#query(kind, String(name));
    return found === undefined ? null : this.#objects.of(kind, found).proxy;
  }

  #all(kind: string): object[] {
    return this.#query(kind, "").map((object) => this.#objects.of(kind, object).proxy);
  }

  /** Queries objects of a kind. name: the object; "": all objects of the kind. */
  #query(what: string, name: string): readonly HookObject[] {
    const answer: { readonly items?: readonly HookObject[]; readonly error?: string } = JSON.parse(
      this.#ask(JSON.stringify({ what, name })),
    );
    if (answer.items === undefined) throw new Error(answer.error ?? "the server gave no answer");
    return answer.items;
  }
}
