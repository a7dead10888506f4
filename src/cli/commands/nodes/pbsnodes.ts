// pbsnodes: shows nodes and marks them offline (docs/reference/commands.md 4).

import { ServerUnreachable } from "#protocol/client.ts";
import type { AttrOp, StatusItem } from "#protocol/messages.ts";
import { mustGet } from "#support/assert.ts";
import { PBS_VERSION } from "#support/version.ts";
import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex, type Link, mustBeOurs, statusItems } from "../../complex.ts";
import { PBSE_UNKNODE } from "../../errors.ts";
import { jsonObject, quote } from "../../json.ts";
import { jsonDocument } from "../../long-format.ts";
import { gatheredOutput } from "../../output.ts";
import { PBSNODES_USAGE, type PbsnodesOptions, parsePbsnodesArguments } from "../../pbsnodes/arguments.ts";
import { groupByHost, hostOf, mergeHost, type Node, text } from "../../pbsnodes/hosts.ts";
import { dsvNode, jobsOf, jsonNode, longNode, summary } from "../../pbsnodes/render.ts";

export const run: Command = asCommand("pbsnodes", PBSNODES_USAGE, pbsnodes);

const FAILED = 1;
const UNKNOWN_NODE = "Unknown node ";

export async function pbsnodes(io: CommandIo, complex: Complex): Promise<number> {
  const options = parsePbsnodesArguments(io.argv);
  if ("errors" in options) {
    io.err(options.errors);
    return FAILED;
  }
  let link: Link | null = null;
  try {
    await mustBeOurs(complex, options.server);
    link = await complex.connect();
    if (options.mode === "mark") return await markNodes(io, link, options);
    if (options.mode === "list") return await listMarked(io, link);
    return await showNodes(io, complex, link, options);
  } catch (error) {
    if (!(error instanceof ServerUnreachable)) throw error;
    io.err(`${error.line}\npbsnodes: cannot connect to server ${options.server ?? complex.serverMeant()}, error=${error.pbse}\n`);
    return FAILED;
  } finally {
    link?.close();
  }
}

type Refused = { readonly id: string; readonly code: number; readonly text: string | null };

/** Returns all vnodes. If the server refuses, prints the refusal and returns null. */
async function allVnodes(io: CommandIo, link: Link): Promise<Node[] | null> {
  const { reply, items } = await statusItems(link, { kind: "status", object: "node", ids: [] });
  const nodes = items.filter((item): item is Node => "attrs" in item);
  if (reply.ok && nodes.length > 0) return nodes;
  if (!reply.ok) io.err(`pbsnodes: ${reply.text ?? `Server returned error ${reply.code}`}\n`);
  else io.err("pbsnodes: Server has no node list\n");
  return null;
}

// --- marking nodes

async function markNodes(io: CommandIo, link: Link, options: PbsnodesOptions): Promise<number> {
  const { items } = await statusItems(link, { kind: "status", object: "node", ids: [], attrs: ["Mom", "resources_available"] });
  const nodes = items.filter((item): item is Node => "attrs" in item);
  const attrs = markAttributes(options);
  let status = 0;
  for (const name of options.operands) {
    const meant = nodes.filter((node) => node.id === name || (!options.vnodes && hostOf(node) === name));
    if (meant.length === 0) {
      io.err(`Error marking node ${name} - ${UNKNOWN_NODE}\n`);
      status = FAILED;
    }
    for (const node of meant) {
      const reply = await link.request({ kind: "manager", verb: "set", object: "node", name: node.id, attrs });
      if (reply.ok) continue;
      io.err(`Error marking node ${node.id} - ${reply.text ?? `error ${reply.code}`}\n`);
      status = FAILED;
    }
  }
  return status;
}

function markAttributes(options: PbsnodesOptions): readonly AttrOp[] {
  const attrs: AttrOp[] = [];
  if (options.mark === "offline") attrs.push({ name: "state", op: "+=", value: "offline" });
  if (options.mark === "online") attrs.push({ name: "state", op: "-=", value: "offline" });
  if (options.mark === "clear") attrs.push({ name: "state", op: "=", value: "free" });
  if (options.comment !== null) attrs.push({ name: "comment", op: "=", value: options.comment });
  return attrs;
}

/** Lists the vnodes that are down or offline (-l). */
async function listMarked(io: CommandIo, link: Link): Promise<number> {
  const nodes = await allVnodes(io, link);
  if (nodes === null) return FAILED;
  const marked = nodes.filter((node) => /\b(?:down|offline)\b/.test(text(node, "state") ?? ""));
  io.out(marked.map((node) => `${node.id.padEnd(20)} ${text(node, "state")} ${text(node, "comment") ?? ""}\n`).join(""));
  return 0;
}

// --- listings

async function showNodes(io: CommandIo, complex: Complex, link: Link, options: PbsnodesOptions): Promise<number> {
  const found = options.mode === "all" ? await allNodes(io, link, options) : await namedNodes(link, options);
  if (found === null) return FAILED;
  const nodes = found.filter((each): each is Node => "attrs" in each);
  const refused = found.filter((each): each is Refused => !("attrs" in each));
  const output = gatheredOutput(io);
  if (options.format === "json") {
    const document = jsonDocument("nodes", {
      now_s: Math.floor(complex.now_ms() / 1000),
      version: PBS_VERSION,
      server: complex.conf().server,
    });
    const rendered = new Map(await jsonNodes(link, nodes, options));
    for (const each of found) {
      const body = "attrs" in each ? rendered.get(each.id) : jsonObject([[each.id, quote(each.text ?? `error ${each.code}`)]], 2);
      output.write(document.object(each.id, body ?? "{}"));
    }
    output.write(document.end());
    output.flush();
    return 0;
  }
  for (const { id, text: reason, code } of refused) output.error(`Node: ${id},  Error: ${reason ?? `error ${code}`}\n`);
  if (nodes.length > 0) output.write(await textOf(link, nodes, options));
  output.flush();
  return refused.length > 0 ? FAILED : 0;
}

async function textOf(link: Link, nodes: readonly Node[], options: PbsnodesOptions): Promise<string> {
  if (options.layout === "long")
    return nodes.map((node) => (options.format === "dsv" ? dsvNode(node, options.delimiter) : longNode(node))).join("");
  const suspended = await suspendedJobs(link, nodes, options);
  return summary(nodes, { ...options, jobs: options.layout === "jobs", suspended }) as string;
}

async function jsonNodes(link: Link, nodes: readonly Node[], options: PbsnodesOptions): Promise<readonly (readonly [string, string])[]> {
  if (options.layout === "long") return nodes.map((node) => [node.id, jsonNode(node)] as const);
  const suspended = await suspendedJobs(link, nodes, options);
  return summary(nodes, { ...options, jobs: options.layout === "jobs", suspended }) as readonly (readonly [string, string])[];
}

/** Returns the suspended jobs among those on the nodes. Only -Sj needs them; without -Sj the server is not asked. */
async function suspendedJobs(link: Link, nodes: readonly Node[], options: PbsnodesOptions): Promise<ReadonlySet<string>> {
  const ids = options.layout === "jobs" ? [...new Set(nodes.flatMap(jobsOf))] : [];
  if (ids.length === 0) return new Set();
  const { items } = await statusItems(link, { kind: "status", object: "job", ids, attrs: ["job_state"] });
  return new Set(items.flatMap((item: StatusItem) => ("attrs" in item && /[SU]/.test(String(item.attrs["job_state"])) ? [item.id] : [])));
}

async function allNodes(io: CommandIo, link: Link, options: PbsnodesOptions): Promise<Node[] | null> {
  const vnodes = await allVnodes(io, link);
  return vnodes === null || options.vnodes ? vnodes : mergeAll(link, groupByHost(vnodes));
}

async function mergeAll(link: Link, hosts: ReadonlyMap<string, readonly Node[]>): Promise<Node[]> {
  const consumable = [...hosts.values()].some((nodes) => nodes.length > 1) ? await consumableResources(link) : new Set<string>();
  return [...hosts].map(([host, nodes]) => mergeHost(host, nodes, consumable));
}

/** Returns the custom resources that are consumable at hosts (flags n and f). */
async function consumableResources(link: Link): Promise<ReadonlySet<string>> {
  const { items } = await statusItems(link, { kind: "status", object: "resource", ids: [] });
  return new Set(items.flatMap((item) => ("attrs" in item && /[nf]/.test(String(item.attrs["flag"] ?? "")) ? [item.id] : [])));
}

/** Returns the nodes that the operands name, in their order. In place of an unknown node, the list has the server's refusal. */
async function namedNodes(link: Link, options: PbsnodesOptions): Promise<(Node | Refused)[]> {
  if (options.vnodes) {
    const { reply, items } = await statusItems(link, { kind: "status", object: "node", ids: options.operands });
    return reply.ok ? [...items] : options.operands.map((id) => ({ ...reply, id }));
  }
  const { reply, items } = await statusItems(link, { kind: "status", object: "node", ids: [] });
  if (!reply.ok) return options.operands.map((id) => ({ ...reply, id }));
  const hosts = groupByHost(items.filter((item): item is Node => "attrs" in item));
  const wanted = new Map(options.operands.flatMap((host) => (hosts.has(host) ? [[host, mustGet(hosts, host)] as const] : [])));
  const merged = new Map((await mergeAll(link, wanted)).map((node) => [node.id, node] as const));
  return options.operands.map((id) => merged.get(id) ?? { id, code: PBSE_UNKNODE, text: UNKNOWN_NODE });
}
