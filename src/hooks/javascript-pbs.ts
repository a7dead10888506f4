// The pbs module of hooks in JavaScript. This one function is made in the hook's own context from its text (javascript-host-main.ts), so it uses nothing
// but what it is given and the language itself: nothing of the host can be reached from it.
//
// J1. Only texts cross the border: the run comes as JSON, the answer leaves as JSON, a question to the server is one text to another.

/** What the host calls. threw: the script ended by throwing `thrown`. */
export type JavascriptHook = { readonly finish: (threw: boolean, thrown: unknown) => string };

/**
 * Puts `pbs` and `console` into the context's global object. runText: {tables, conf, events, run} as JSON. ask: a question as JSON to its answer as JSON.
 */
export function installPbs(global: { [name: string]: unknown }, runText: string, ask: (question: string) => string): JavascriptHook {
  type Texts = { [name: string]: string | string[] | { [resource: string]: string } };
  type Obj = { readonly id: string | null; readonly attrs: Texts };
  type Changes = { [name: string]: string | null | { [resource: string]: string | null } };
  type Tracked = { readonly proxy: object; readonly changes: () => Changes };

  const { tables, conf, events, run } = JSON.parse(runText) as {
    tables: { [kind: string]: { [name: string]: string } };
    conf: { [name: string]: string };
    events: string[];
    run: {
      hook: { [name: string]: unknown };
      input: { [name: string]: unknown };
      resources: { [name: string]: string };
      config: string | null;
    };
  };
  const { input } = run;
  const STOP = Object.freeze({ stop: "the hook has answered" });
  const state = { verdict: "accept", message: null as string | null, code: null as number | null };
  const wishes: { [job: string]: string } = {};
  const requests: { [name: string]: unknown } = { jobs: wishes };
  const logs: { level: number; job: string | null; text: string }[] = [];
  let output = "";

  // --- values

  const SHIFT: { [unit: string]: number } = { "": 0, k: 10, m: 20, g: 30, t: 40, p: 50 };
  const duration = (value: unknown = 0): object => {
    let seconds: number;
    if (typeof value === "string") {
      const match = /^\s*(?:(?:(\d+):)?(\d+):)?(\d+)(?:\.\d+)?\s*$/.exec(value);
      if (match === null) throw new TypeError(`invalid duration value: ${value}`);
      seconds = Number(match[1] ?? 0) * 3600 + Number(match[2] ?? 0) * 60 + Number(match[3]);
    } else seconds = Math.trunc(Number(value));
    if (!Number.isFinite(seconds)) throw new TypeError(`invalid duration value: ${String(value)}`);
    const two = (number: number): string => String(number).padStart(2, "0");
    const text = `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
    return Object.freeze({ seconds, valueOf: () => seconds, toString: () => text, toJSON: () => text });
  };
  const size = (value: unknown = 0): object => {
    const match = /^\s*([+-]?\d+)\s*([kmgtp]?)([bw]?)\s*$/i.exec(String(value));
    if (match === null) throw new TypeError(`invalid size value: ${String(value)}`);
    const unit = (match[2] as string).toLowerCase();
    const count = Number(match[1]) * ((match[3] as string).toLowerCase() === "w" ? 8 : 1);
    const bytes = count * 2 ** (SHIFT[unit] as number);
    const text = `${count}${unit}b`;
    return Object.freeze({ bytes, valueOf: () => bytes, toString: () => text, toJSON: () => text });
  };
  const truth = (value: unknown): boolean | null => {
    const word = String(value).toLowerCase();
    return ["true", "t", "y", "1"].includes(word) ? true : ["false", "f", "n", "0"].includes(word) ? false : null;
  };
  const fromText = (kind: string, text: string): unknown => {
    switch (kind) {
      case "boolean":
        return truth(text);
      case "interactive":
        return truth(text) === true;
      case "integer":
      case "long":
      case "long64":
      case "time":
      case "float":
        return Number(text);
      case "duration":
        return duration(text);
      case "size":
        return size(text);
      default:
        return text;
    }
  };
  const toText = (what: string, kind: string, value: unknown): string => {
    const bad = (): never => {
      throw new TypeError(`${what}: not a value for it: ${String(value)}`);
    };
    switch (kind) {
      case "boolean": {
        const flag = truth(value);
        return flag === null ? bad() : flag ? "True" : "False";
      }
      case "integer":
      case "long":
      case "long64":
      case "time":
        return /^[+-]?\d+$/.test(String(value).trim()) ? String(value).trim() : bad();
      case "float":
        return Number.isFinite(Number(value)) && String(value).trim() !== "" ? String(Number(value)) : bad();
      case "duration":
        return String(duration(typeof value === "object" ? String(value) : value));
      case "size":
        return String(size(value));
      default:
        return Array.isArray(value) ? value.join(",") : String(value);
    }
  };

  // --- objects

  const tracked = (
    kind: string,
    { id, attrs }: Obj,
    writable: readonly string[] = [],
    extra: { [name: string]: unknown } = {},
  ): Tracked => {
    const table = tables[kind] ?? {};
    const texts: Texts = { ...attrs };
    const changed: Changes = {};
    const resources: { [name: string]: { readonly proxy: object; readonly changed: { [resource: string]: string | null } } } = {};
    const typeOf = (name: string): string => {
      const type = table[name];
      if (type === undefined && !Object.hasOwn(texts, name)) throw new TypeError(`${kind} has no attribute '${name}'`);
      return type ?? "string";
    };
    const checkWritable = (name: string): void => {
      if (!writable.includes(name)) throw new TypeError(`${kind} attribute '${name}' is readonly`);
    };
    const resourceList = (name: string): object => {
      const known = resources[name];
      if (known !== undefined) return known.proxy;
      const held: { [resource: string]: string } = { ...((texts[name] as { [resource: string]: string } | undefined) ?? {}) };
      const changes: { [resource: string]: string | null } = {};
      const kindOf = (resource: string): string => {
        const type = run.resources[resource];
        if (type === undefined && !Object.hasOwn(held, resource)) throw new TypeError(`there is no resource '${resource}'`);
        return type ?? "string";
      };
      const set = (resource: string, value: unknown): true => {
        checkWritable(name);
        const type = kindOf(resource);
        if (value === null || value === undefined) {
          delete held[resource];
          changes[resource] = null;
        } else {
          held[resource] = toText(`${name}.${resource}`, type, value);
          changes[resource] = held[resource];
        }
        return true;
      };
      const proxy = new Proxy(Object.create(null) as object, {
        get: (_, resource) => {
          if (typeof resource === "symbol") return undefined;
          if (resource === "toString")
            return () =>
              Object.entries(held)
                .map((entry) => entry.join("="))
                .join(",");
          if (resource === "toJSON") return () => ({ ...held });
          const type = kindOf(resource);
          return Object.hasOwn(held, resource) ? fromText(type, held[resource] as string) : null;
        },
        set: (_, resource, value) => set(String(resource), value),
        deleteProperty: (_, resource) => set(String(resource), null),
        has: (_, resource) => Object.hasOwn(held, resource),
        ownKeys: () => Object.keys(held),
        getOwnPropertyDescriptor: (_, resource) =>
          Object.hasOwn(held, resource)
            ? { value: held[String(resource)], enumerable: true, configurable: true, writable: true }
            : undefined,
      });
      resources[name] = { proxy, changed: changes };
      return proxy;
    };
    const get = (name: string): unknown => {
      if (Object.hasOwn(extra, name)) return extra[name];
      if (name === "toString") return () => String(id);
      if (name === "toJSON") return () => ({ id, ...texts });
      const type = typeOf(name);
      if (type === "resource_list" || type === "entity_limit_res") return resourceList(name);
      const text = texts[name];
      if (text === undefined) return null;
      return fromText(type, Array.isArray(text) ? text.join(",") : (text as string));
    };
    const set = (name: string, value: unknown): true => {
      if (Object.hasOwn(extra, name)) throw new TypeError(`${kind} attribute '${name}' is readonly`);
      const type = typeOf(name);
      checkWritable(name);
      if (type === "resource_list") {
        const list = resourceList(name) as { [resource: string]: unknown };
        const wanted = (value ?? {}) as { [resource: string]: unknown };
        if (wanted === list) return true;
        for (const resource of Object.keys(list)) if (!(resource in wanted)) list[resource] = null;
        for (const resource of Object.keys(wanted)) list[resource] = wanted[resource];
      } else if (value === null || value === undefined) {
        delete texts[name];
        changed[name] = null;
      } else {
        const text = toText(name, type, value);
        texts[name] = text;
        changed[name] = text;
      }
      return true;
    };
    const proxy = new Proxy(Object.create(null) as object, {
      get: (_, name) => (typeof name === "symbol" ? undefined : get(name)),
      set: (_, name, value) => set(String(name), value),
      deleteProperty: (_, name) => set(String(name), null),
      has: (_, name) => Object.hasOwn(table, name) || Object.hasOwn(extra, name),
      ownKeys: () => Object.keys(texts),
      getOwnPropertyDescriptor: (_, name) =>
        Object.hasOwn(texts, name) ? { value: texts[String(name)], enumerable: true, configurable: true, writable: true } : undefined,
    });
    const changes = (): Changes => {
      const all: Changes = { ...changed };
      for (const [name, list] of Object.entries(resources)) if (Object.keys(list.changed).length > 0) all[name] = { ...list.changed };
      return all;
    };
    return { proxy, changes };
  };

  const writable = input["writable"] as { [kind: string]: string[] | undefined };
  const extras: { [kind: string]: (object: Obj) => { [name: string]: unknown } } = {
    job: ({ id }) => ({
      id,
      rerun: () => void (wishes[String(id)] = "rerun"),
      delete: () => void (wishes[String(id)] = "delete"),
      in_ms_mom: () => input["first_host"] !== false,
    }),
    vnode: ({ id }) => ({ name: id }),
    queue: ({ id }) => ({ name: id }),
    resv: ({ id }) => ({ resvid: id }),
  };
  const objectOf = (kind: string, object: Obj, names: readonly string[] = []): Tracked =>
    tracked(kind, object, names, extras[kind]?.(object));

  // --- the event

  const single: { [name: string]: Tracked } = {};
  const lists: { [name: string]: { [id: string]: Tracked } } = {};
  const fields: { [name: string]: unknown } = {
    type: input["event"],
    requestor: input["requestor"],
    requestor_host: input["requestor_host"],
    hook_name: run.hook["name"],
    hook_type: run.hook["type"],
    alarm: run.hook["alarm"],
    freq: run.hook["freq"],
    order: run.hook["order"],
    user: run.hook["user"],
    debug: run.hook["debug"],
    fail_action: (run.hook["fail_action"] as string[]).join(","),
    accept: () => {
      Object.assign(state, { verdict: "accept", message: null, code: null });
      throw STOP;
    },
    reject: (message?: unknown, code?: unknown) => {
      state.verdict = "reject";
      state.message = message === undefined || message === null ? null : String(message);
      state.code = typeof code === "number" ? code : null;
      throw STOP;
    },
  };
  for (const kind of ["job", "resv", "vnode"]) {
    if (input[kind] !== undefined) fields[kind] = (single[kind] = objectOf(kind, input[kind] as Obj, writable[kind])).proxy;
    if (input[`${kind}_o`] !== undefined) fields[`${kind}_o`] = objectOf(kind, input[`${kind}_o`] as Obj).proxy;
  }
  for (const kind of ["vnode", "job", "resv"]) {
    const name = `${kind}_list`;
    if (input[name] === undefined) continue;
    const list: { [id: string]: Tracked } = {};
    const shown: { [id: string]: object } = {};
    for (const object of input[name] as Obj[]) {
      const made = objectOf(kind, object, writable[kind]);
      list[String(object.id)] = made;
      shown[String(object.id)] = made.proxy;
    }
    lists[name] = list;
    fields[name] = shown;
  }
  if (input["src_queue"] !== undefined) fields["src_queue"] = objectOf("queue", input["src_queue"] as Obj).proxy;
  for (const name of ["management", "pid"]) if (input[name] !== undefined) fields[name] = input[name];
  const own: { progname?: unknown; argv?: unknown[]; env?: { [name: string]: unknown } } = {};
  if (input["progname"] !== undefined) own.progname = input["progname"];
  if (input["argv"] !== undefined) own.argv = [...(input["argv"] as string[])];
  if (input["env"] !== undefined) own.env = { ...(input["env"] as { [name: string]: string }) };
  const event = new Proxy(Object.create(null) as object, {
    get: (_, name) => {
      if (typeof name === "symbol") return undefined;
      if (Object.hasOwn(own, name)) return own[name as keyof typeof own];
      if (!Object.hasOwn(fields, name)) throw new TypeError(`event ${String(input["event"])} has no attribute '${name}'`);
      return fields[name];
    },
    set: (_, name, value) => {
      if (!Object.hasOwn(own, name)) throw new TypeError(`event attribute '${String(name)}' is readonly`);
      own[name as keyof typeof own] = value as never;
      return true;
    },
    has: (_, name) => Object.hasOwn(own, name) || Object.hasOwn(fields, name),
  });

  // --- the server

  const query = (what: string, name: string): Obj[] => {
    const answer = JSON.parse(ask(JSON.stringify({ what, name }))) as { items?: Obj[]; error?: string };
    if (answer.items === undefined) throw new Error(answer.error ?? "the server gave no answer");
    return answer.items;
  };
  const one = (kind: string, name: unknown): object | null => {
    const [found] = query(kind, String(name));
    return found === undefined ? null : objectOf(kind, found).proxy;
  };
  const all = (kind: string): object[] => query(kind, "").map((object) => objectOf(kind, object).proxy);
  const server = (): object => {
    const [found] = query("server", "");
    return tracked("server", found ?? { id: String(input["server"]), attrs: {} }, [], {
      name: input["server"],
      job: (id: unknown) => one("job", id),
      jobs: () => all("job"),
      queue: (name: unknown) => one("queue", name),
      queues: () => all("queue"),
      vnode: (name: unknown) => one("vnode", name),
      vnodes: () => all("vnode"),
      resv: (id: unknown) => one("resv", id),
      resvs: () => all("resv"),
      scheduler_restart_cycle: () => void (requests["restart_cycle"] = true),
    }).proxy;
  };

  // --- what hooks see

  const log = (level: unknown, job: string | null, message: unknown): void => {
    logs.push({ level: typeof level === "number" ? Math.trunc(level) : 4, job, text: String(message) });
  };
  const print = (...words: unknown[]): void => {
    if (output.length < 65536) output += `${words.map(String).join(" ")}\n`;
  };
  const levels = {
    LOG_ERROR: 4,
    LOG_WARNING: 4,
    LOG_DEBUG: 4,
    EVENT_ERROR: 1,
    EVENT_SYSTEM: 2,
    EVENT_ADMIN: 4,
    EVENT_JOB: 8,
    EVENT_SECURITY: 32,
    EVENT_SCHED: 64,
    EVENT_DEBUG: 128,
    EVENT_DEBUG2: 256,
    EVENT_RESV: 512,
    EVENT_DEBUG3: 1024,
  };
  global["pbs"] = Object.freeze({
    ...levels,
    /** pbs.QUEUEJOB, ...: what event().type is compared with */
    ...Object.fromEntries(events.map((event) => [event.toUpperCase(), event])),
    event: () => event,
    server,
    duration,
    size,
    logmsg: (level: unknown, message: unknown) => log(level, null, message),
    logjobmsg: (job: unknown, message: unknown) => log(4, String(job), message),
    get_local_nodename: () => input["node"],
    get_pbs_conf: () => ({ ...conf }),
    /** text of the hook's configuration file; null: it has none */
    config: run.config,
    reboot: (command: unknown = "") => {
      requests["reboot"] = String(command);
      throw STOP;
    },
  });
  global["console"] = Object.freeze({ log: print, info: print, warn: print, error: print, debug: print });

  // --- the answer

  const changesOf = (): object => {
    const changes: { [name: string]: unknown } = {};
    for (const name of ["job", "resv"]) {
      const made = single[name]?.changes() ?? {};
      if (Object.keys(made).length > 0) changes[name] = made;
    }
    for (const name of ["vnode_list", "job_list"]) {
      const made = Object.fromEntries(
        Object.entries(lists[name] ?? {})
          .map(([id, object]) => [id, object.changes()] as const)
          .filter(([, each]) => Object.keys(each).length > 0),
      );
      if (Object.keys(made).length > 0) changes[name] = made;
    }
    if (own.progname !== input["progname"]) changes["progname"] = String(own.progname);
    if (own.argv !== undefined && JSON.stringify(own.argv) !== JSON.stringify(input["argv"])) changes["argv"] = own.argv.map(String);
    if (own.env !== undefined && JSON.stringify(own.env) !== JSON.stringify(input["env"]))
      changes["env"] = Object.fromEntries(Object.entries(own.env).map(([name, value]) => [name, String(value)]));
    return changes;
  };
  return {
    finish: (threw, thrown) => {
      if (threw && thrown !== STOP) {
        const stack = (thrown as { stack?: unknown } | null | undefined)?.stack;
        // What stands below the script is the host's.
        const text = typeof stack === "string" ? (stack.split(/\n\s+at Script\.runInContext/)[0] as string) : String(thrown);
        return JSON.stringify({ verdict: "error", error: text, logs, output });
      }
      const keep = state.verdict === "accept" || input["keep_rejected"] === true;
      return JSON.stringify({ ...state, changes: keep ? changesOf() : {}, requests, logs, output });
    },
  };
}
