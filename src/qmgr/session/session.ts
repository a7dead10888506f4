// One run of qmgr: its servers, its active objects, the execution of requests and the exit status (docs/reference/qmgr.md 1,
// 4, 5, 8). The caller supplies connections, streams and history (QmgrWorld).

import { BUILTIN_RESOURCES } from "#model/resource-table.ts";
import type { AttrOp, ManagedObject, ManagerRequest, StatusItem, StatusRequest, WireAttrs } from "#protocol/messages.ts";
import { attributeLookup } from "../language/attribute-lookup.ts";
import { parseRequest, prepareParser } from "../language/grammar.ts";
import { helpText } from "../language/help.ts";
import type { AttributeTerm, ObjectName, ParseFault, QmgrRequest } from "../language/request.ts";
import { contentsWords, exportContents, type HookFiles, type HookServer, importContents, printContents } from "./hook-contents.ts";
import { banner, type Ctime, listObject, printObject } from "./print.ts";

export type Refusal = { readonly ok: false; readonly code: number; readonly text: string | null };
/** A connection to one server. Its functions throw if the connection is lost. */
export type QmgrServer = HookServer & {
  manage(request: ManagerRequest): Promise<{ readonly ok: true; readonly text?: string } | Refusal>;
  status(request: StatusRequest): Promise<{ readonly ok: true; readonly items: readonly StatusItem[] } | Refusal>;
};
export type QmgrWorld = {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** connects to a server; undefined: the server does not exist, and the message of the library (`Unknown Host.`) has been written to err */
  connect(server: string): Promise<QmgrServer | undefined>;
  readonly ctime: Ctime;
  readonly stdinIsTty: boolean;
  /** returns the path of the server's formula file if this user cannot write it, otherwise null. PBS's qmgr writes this file; ours lets the server do it */
  readonly closedFormulaFile: () => string | null;
  /** returns the lines of the history, oldest first */
  readonly history: () => readonly string[];
  readonly hookFiles: HookFiles;
};
export type QmgrOptions = { readonly abort: boolean; readonly echo: boolean; readonly parseOnly: boolean; readonly silent: boolean };

/** The result of a request. status: exit status. kind: what happened; after `quit`, qmgr ends. */
export type Outcome = { readonly status: number; readonly kind: "ok" | "parse" | "refused" | "quit" };

const BUILTIN = new Set(BUILTIN_RESOURCES.map((resource) => resource.name));
const PBSE_ATTRRO = 15003;
const PBSE_HOOKERROR = 15136;
const EMPTY_STATUS = 255;
const ACTIVE_LABEL: Partial<Record<ManagedObject, string>> = { server: "servers", sched: "schedulers", queue: "queues", node: "nodes" };

export class QmgrSession {
  private servers: string[];
  private readonly active = new Map<ManagedObject, readonly ObjectName[]>();
  private readonly world: QmgrWorld;
  private readonly options: QmgrOptions;

  /** servers: the names in the command line; if there are none, the default server "" is used. */
  constructor(world: QmgrWorld, options: QmgrOptions, servers: readonly string[]) {
    this.world = world;
    this.options = options;
    this.servers = servers.length === 0 ? [""] : [...servers];
  }

  /** Connects to all servers. Returns the names of those that cannot be reached (exit status 3 at the start). */
  async connectAll(): Promise<readonly string[]> {
    const missing: string[] = [];
    for (const server of this.servers) {
      const connecting = this.world.connect(server);
      prepareParser();
      if ((await connecting) === undefined) {
        this.complain(`qmgr: cannot connect to server ${server}`);
        missing.push(server);
      }
    }
    return missing;
  }

  /** Parses and executes one request line. */
  async run(line: string): Promise<Outcome> {
    if (this.options.echo) this.world.out(`${line}\n`);
    const parsed = parseRequest(line, attributeLookup);
    if (!parsed.ok) {
      this.reportFault(line, parsed.fault);
      return { status: parsed.fault.exit_code, kind: "parse" };
    }
    return await this.execute(parsed.request);
  }

  private async execute(request: QmgrRequest): Promise<Outcome> {
    switch (request.verb) {
      case "nothing":
        return { status: EMPTY_STATUS, kind: "ok" };
      case "quit":
        return { status: 0, kind: "quit" };
      case "help":
        this.world.out(helpText(request.argument));
        return { status: EMPTY_STATUS, kind: "ok" };
      case "history":
        this.printHistory(request.argument);
        return { status: 0, kind: "ok" };
      default:
        break;
    }
    if (this.options.parseOnly) return { status: 0, kind: "ok" };
    switch (request.verb) {
      case "active":
        return await this.activate(request.object, request.names);
      case "list":
      case "print":
        return await this.show(request.verb, request.object, request.names, request.attrs);
      case "create":
      case "delete":
      case "set":
      case "unset":
        return await this.manage(request.verb, request.object, request.names, request.attrs);
      case "import":
      case "export":
        return await this.contents(request.verb, request.object === "pbshook" ? "pbshook" : "hook", request.names, request.words);
      default: {
        const unreachable: never = request;
        return unreachable;
      }
    }
  }

  private async manage(
    verb: ManagerRequest["verb"],
    object: ManagedObject,
    names: readonly ObjectName[],
    attrs: readonly AttributeTerm[],
  ): Promise<Outcome> {
    let status = 0;
    for (const { name, server } of this.targets(object, names, verb)) {
      const connection = await this.connectTo(server);
      if (connection === undefined) {
        status = 1;
        continue;
      }
      if (object === "server" && verb === "set" && attrs.some((term) => term.name.toLowerCase() === "job_sort_formula")) {
        const file = this.world.closedFormulaFile();
        if (file !== null) this.complain(`qmgr: Failed to open ${file} for writing.`);
      }
      const reply = await connection.manage({ kind: "manager", verb, object, name, attrs: attrs.map((term) => toOperation(verb, term)) });
      if (reply.ok) {
        if (reply.text !== undefined && reply.text !== "") this.complain(reply.text);
        continue;
      }
      status = reply.code % 256;
      const quiet = !this.world.stdinIsTty && verb === "set" && object === "node" && reply.code === PBSE_ATTRRO;
      if (!quiet) this.reportRefusal(name, server, reply);
      if (this.options.abort) return { status: 2, kind: "refused" };
    }
    return { status, kind: status === 0 ? "ok" : "refused" };
  }

  private async contents(
    verb: "import" | "export",
    object: "hook" | "pbshook",
    names: readonly ObjectName[],
    words: readonly string[],
  ): Promise<Outcome> {
    const asked = contentsWords(verb, words);
    if ("fault" in asked) {
      this.complain(asked.fault);
      return { status: 1, kind: "refused" };
    }
    let status = 0;
    for (const { name, server } of this.targets(object, names, verb)) {
      const connection = await this.connectTo(server);
      if (connection === undefined) {
        status = 1;
        continue;
      }
      const move = verb === "import" ? importContents : exportContents;
      const reply = await move(connection, this.world.hookFiles, object, name, asked);
      if (reply.ok) {
        if (reply.text !== undefined) this.complain(reply.text);
        continue;
      }
      if ("fault" in reply) this.complain(reply.fault);
      else this.reportRefusal(name, server, reply);
      status = "fault" in reply ? 1 : reply.code % 256;
      if (this.options.abort) return { status: 2, kind: "refused" };
    }
    return { status, kind: status === 0 ? "ok" : "refused" };
  }

  private async show(
    verb: "list" | "print",
    object: ManagedObject,
    names: readonly ObjectName[],
    attrs: readonly AttributeTerm[],
  ): Promise<Outcome> {
    const wanted = attrs.length === 0 ? undefined : uniqueLast(attrs.map((term) => term.name)).reverse();
    let status = 0;
    for (const { name, server } of this.targets(object, names, verb)) {
      const connection = await this.connectTo(server);
      if (connection === undefined) {
        status = 1;
        continue;
      }
      if (verb === "print" && object === "server" && wanted === undefined) {
        await this.showObjects(verb, connection, "resource", "", server, undefined);
        await this.showObjects(verb, connection, "queue", "", server, undefined);
      }
      if (!(await this.showObjects(verb, connection, object, name, server, wanted))) status = 1;
    }
    return { status, kind: status === 0 ? "ok" : "refused" };
  }

  /** Shows objects for list or print. Returns false if the server refused. */
  private async showObjects(
    verb: "list" | "print",
    connection: QmgrServer,
    object: ManagedObject,
    name: string,
    server: string,
    wanted: readonly string[] | undefined,
  ): Promise<boolean> {
    const filtered = object === "sched" || object === "server";
    const reply = await connection.status({
      kind: "status",
      object,
      ids: filtered || name === "" ? [] : [name],
      ...(wanted === undefined ? {} : { attrs: needed(object, verb, wanted) }),
    });
    if (!reply.ok) {
      // As PBS does: a user who may not list all hooks gets a message, but the request does not count as failed.
      if (reply.code === PBSE_HOOKERROR && verb === "list" && name === "") {
        this.complain(reply.text ?? "");
        return true;
      }
      this.reportRefusal(name, server, reply);
      return false;
    }
    const refused = reply.items.find((item) => "code" in item);
    if (refused !== undefined && "code" in refused) {
      this.reportRefusal(name, server, { ok: false, code: refused.code, text: refused.text });
      return false;
    }
    let items = reply.items.flatMap((item) => ("attrs" in item ? [item] : []));
    if (object === "sched" && name !== "") items = items.filter((item) => item.id === name);
    if (object === "resource" && name === "") items = items.filter((item) => !BUILTIN.has(item.id));
    if (object === "queue" && name === "" && verb === "print") items = items.filter((item) => !/^[RSM]\d+$/.test(item.id));
    const whole = object === "resource" && name === "";
    if ((verb === "print" && (object !== "resource" || (whole && items.length > 0))) || (verb === "list" && whole && items.length > 0))
      this.world.out(banner(object));
    const arrays = verb === "print" ? await arrayResources(connection, items) : NO_RESOURCES;
    let text = "";
    for (const item of items) {
      text +=
        verb === "list"
          ? listObject(object, item.id, item.attrs, wanted, this.world.ctime)
          : printObject(object, item.id, item.attrs, wanted, arrays);
      if (verb === "print" && (object === "hook" || object === "pbshook") && wanted === undefined)
        text += await printContents(connection, object, item.id);
    }
    this.world.out(text);
    return true;
  }

  private async activate(object: ManagedObject, names: readonly ObjectName[]): Promise<Outcome> {
    const label = ACTIVE_LABEL[object];
    if (label === undefined) return { status: 1, kind: "refused" };
    if (names.length === 0) {
      const lines =
        object === "server"
          ? this.servers.map((server) => server || "default")
          : (this.active.get(object) ?? []).map(({ name, server }) => `${name}@${server || "active"}`);
      this.world.out(`Active ${label}:\n${lines.map((line) => `${line}\n`).join("")}`);
      return { status: 0, kind: "ok" };
    }
    if (object === "server") return await this.activateServers(names);
    for (const { name, server } of names) {
      const connection = await this.connectTo(server);
      if (connection === undefined) return { status: 1, kind: "refused" };
      const reply = await connection.status({ kind: "status", object, ids: object === "sched" ? [] : [name], attrs: [] });
      const refusal = reply.ok ? reply.items.find((item) => "code" in item) : reply;
      if (refusal !== undefined && "code" in refusal) {
        // As PBS does: an unknown node is ignored without a message, and an unknown queue ends qmgr if its input is not a terminal.
        if (object === "node") return { status: 0, kind: "ok" };
        this.reportRefusal(name, server, { ok: false, code: refusal.code, text: refusal.text });
        return { status: 1, kind: this.world.stdinIsTty ? "refused" : "quit" };
      }
    }
    this.active.set(object, names);
    return { status: 0, kind: "ok" };
  }

  private async activateServers(names: readonly ObjectName[]): Promise<Outcome> {
    const servers = names.map(({ name, server }) => (name === "default" ? "" : name || server));
    for (const server of servers) if ((await this.connectTo(server)) === undefined) return { status: 0, kind: "ok" };
    this.servers = servers;
    return { status: 0, kind: "ok" };
  }

  /** Returns the names of the objects of a request, each with its server ("": the default server). */
  private targets(object: ManagedObject, names: readonly ObjectName[], verb: string): readonly ObjectName[] {
    if (names.length > 0) {
      return names.flatMap(({ name, server }) => {
        const servers = server === "" || server === "active" ? this.servers : [server === "default" ? "" : server];
        if ((object === "server" || object === "hook" || object === "pbshook") && name === "default") return [{ name: "", server: "" }];
        if (object === "server" && server === "") return [{ name: "", server: name }];
        return servers.map((each) => ({ name, server: each }));
      });
    }
    if (object === "queue" || object === "node") {
      const active = this.active.get(object);
      if (active === undefined || active.length === 0) {
        this.complain(object === "queue" ? "No Active Queues, nothing done." : "No Active Nodes, nothing done.");
        return [];
      }
      return this.targets(object, active, verb);
    }
    const active = object === "sched" ? this.active.get(object) : undefined;
    if (active !== undefined && active.length > 0) return this.targets(object, active, verb);
    const name = object === "sched" && (verb === "set" || verb === "unset" || verb === "create") ? "default" : "";
    return this.servers.map((server) => ({ name, server }));
  }

  private async connectTo(server: string): Promise<QmgrServer | undefined> {
    const connection = await this.world.connect(server);
    if (connection === undefined) this.complain(`qmgr: cannot connect to server ${server}`);
    return connection;
  }

  private printHistory(argument: string): void {
    const lines = this.world.history();
    const count = /^\d+$/.test(argument) ? Number(argument) : lines.length;
    const first = Math.max(0, lines.length - count);
    this.world.out(
      lines
        .slice(first)
        .map((line, index) => `${first + index + 1}\t${line}\n`)
        .join(""),
    );
  }

  private reportFault(line: string, fault: ParseFault): void {
    switch (fault.kind) {
      case "operation":
        this.complain(`qmgr: Illegal operation: ${fault.word}\nTry 'help' if you are having trouble.`);
        break;
      case "no-object":
        this.complain("qmgr: No object type given");
        break;
      case "object":
        this.complain(`qmgr: Illegal object type: ${fault.word}.`);
        break;
      case "syntax":
        if (fault.word_too_long === true) this.complain("qmgr: max word length exceeded");
        this.complain(`qmgr: Syntax error\n${line}\n${" ".repeat(fault.column)}^`);
        break;
      default: {
        const unreachable: never = fault;
        return unreachable;
      }
    }
  }

  private reportRefusal(name: string, server: string, { code, text }: Refusal): void {
    if (text !== null) this.complain(`qmgr obj=${name} svr=${server === "" ? "default" : server}: ${text}`);
    this.complain(code === PBSE_HOOKERROR ? "qmgr: hook error returned from server" : `qmgr: Error (${code}) returned from server`);
  }

  /** Prints a message of qmgr itself. With -z, no such message is printed. */
  complain(text: string): void {
    if (!this.options.silent) this.world.err(`${text}\n`);
  }
}

function toOperation(verb: ManagerRequest["verb"], { name, resource, op, value }: AttributeTerm): AttrOp {
  const base = { name, ...(resource === undefined ? {} : { resource }) };
  // setting an empty value means unset (docs/reference/qmgr.md 3)
  if (verb === "unset" || (verb === "set" && value === "")) return { ...base, op: "unset", value: "" };
  return { ...base, op: op ?? "=", value: value ?? "" };
}

const NO_RESOURCES: ReadonlySet<string> = new Set();

/**
 * Returns the names of resources of type string_array: their values are printed one element at a time. The server is asked only if some value has several
 * elements.
 */
async function arrayResources(connection: QmgrServer, items: readonly { readonly attrs: WireAttrs }[]): Promise<ReadonlySet<string>> {
  const lists = items.flatMap(({ attrs }) => Object.values(attrs)).filter((value) => typeof value === "object" && !Array.isArray(value));
  if (!lists.some((list) => Object.values(list).some((value) => typeof value === "string" && value.includes(",")))) return NO_RESOURCES;
  const reply = await connection.status({ kind: "status", object: "resource", ids: [], attrs: ["type"] });
  const resources = reply.ok ? reply.items : [];
  return new Set(resources.flatMap((item) => ("attrs" in item && item.attrs["type"] === "string_array" ? [item.id] : [])));
}

/** Returns each name once, at the position of its last occurrence. */
function uniqueLast(names: readonly string[]): string[] {
  return names.filter((name, index) => !names.includes(name, index + 1));
}

/** Returns the attributes to request. For print, the attributes of a node must include Mom and Port, which its create line needs. */
function needed(object: ManagedObject, verb: "list" | "print", wanted: readonly string[]): readonly string[] {
  return object === "node" && verb === "print" ? [...wanted, "Mom", "Port"] : object === "resource" ? ["type", "flag"] : wanted;
}
