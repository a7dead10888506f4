// Reads the attributes of a job for the mom: typed values by PBS name (src/model), with their defaults. Pure.

import { eachChunk, readSelect } from "#model/request/select.ts";
import type { MomJob } from "#protocol/mom-link.ts";
import { PORT_MAX, type TerminalTicket, TICKET_ADDRESS, TICKET_SECRET, TICKET_SOCKET } from "#protocol/terminal/link.ts";
import { isRecord } from "#support/guards.ts";

export type Attrs = MomJob["attrs"];

export const textOf = (attrs: Attrs, name: string): string | null => {
  const value = attrs[name];
  return typeof value === "string" && value !== "" ? value : null;
};

export const listOf = (attrs: Attrs, name: string): readonly string[] => {
  const value = attrs[name];
  return Array.isArray(value) ? (value as string[]) : [];
};

export const resourcesOf = (attrs: Attrs): { readonly [resource: string]: string | number | boolean } => {
  const value = attrs["Resource_List"];
  return typeof value === "object" && value !== null ? (value as { [resource: string]: string | number | boolean }) : {};
};

/** Whether the job is interactive (qsub -I). */
export const isInteractive = (attrs: Attrs): boolean =>
  attrs["interactive"] !== undefined && attrs["interactive"] !== 0 && attrs["interactive"] !== false;

/** Returns the address of the qsub that waits for an interactive job; null: the job is not interactive, or no qsub waits. */
export function ticketOf(attrs: Attrs): TerminalTicket | null {
  const terminal: unknown = attrs["terminal"];
  const { socket, secret, port, address }: { readonly [name: string]: unknown } = isRecord(terminal) ? terminal : {};
  const known = typeof socket === "string" && TICKET_SOCKET.test(socket) && typeof secret === "string" && TICKET_SECRET.test(secret);
  if (!isInteractive(attrs) || !known) return null;
  return {
    socket,
    secret,
    ...(typeof port === "number" && Number.isInteger(port) && port > 0 && port <= PORT_MAX ? { port } : {}),
    ...(typeof address === "string" && TICKET_ADDRESS.test(address) ? { address } : {}),
  };
}

/**
 * Returns the umask of -W umask; default 077. The attribute is a decimal number whose digits are meant as octal. Digits after one that is not octal are
 * ignored.
 */
export function umaskOf(attrs: Attrs): number {
  const value = attrs["umask"];
  if (value === undefined || value === null) return 0o077;
  const octal = Number.parseInt(String(value), 8);
  return Number.isNaN(octal) ? 0 : octal & 0o777;
}

/** Splits a job id: `12.svr` -> 12, null; `12[3].svr` -> 12, 3. */
export function jobNumbers(id: string): { readonly sequence: string; readonly index: string | null } {
  const match = /^(\d+)(?:\[(\d+)\])?/.exec(id);
  return { sequence: match?.[1] ?? id, index: match?.[2] ?? null };
}

/** Returns the path of the job's shell: the -S entry for this host, else the -S entry without a host, else the login shell. */
export function shellOf(attrs: Attrs, host: string, login_shell: string): string {
  let anywhere: string | null = null;
  for (const element of listOf(attrs, "Shell_Path_List")) {
    const at = element.lastIndexOf("@");
    if (at < 0) anywhere ??= element;
    else if (isSameHost(element.slice(at + 1), host)) return element.slice(0, at);
  }
  return anywhere ?? (login_shell === "" ? "/bin/sh" : login_shell);
}

/** Whether two names are of the same host. A short name equals the full one: `svr` is `svr.example.org`. */
export function isSameHost(name: string, host: string): boolean {
  const short = (full: string): string => (/^[\d.]+$/.test(full) ? full : (full.split(".")[0] ?? full)).toLowerCase();
  return name.toLowerCase() === host.toLowerCase() || short(name) === short(host);
}

/** Returns program and arguments of `qsub -- program args` (stored as XML elements, docs/reference/commands.md 1.1); null: the job has a script. */
export function commandOfJob(attrs: Attrs): readonly string[] | null {
  const executable = textOf(attrs, "executable");
  if (executable === null) return null;
  const [program = ""] = elements(executable, "Executable");
  return [program, ...elements(textOf(attrs, "argument_list") ?? "", "Argument")];
}

/** Returns the contents of the <jsdl-hpcpa:NAME> elements. A text without such elements counts as the content of one. */
function elements(text: string, name: string): string[] {
  if (text === "") return [];
  const found = [...text.matchAll(new RegExp(`<jsdl-hpcpa:${name}>([^<]*)</jsdl-hpcpa:${name}>`, "g"))].map((match) =>
    unescapeXml(match[1] ?? ""),
  );
  return found.length === 0 && !text.startsWith("<jsdl-hpcpa:") ? [text] : found;
}

const ENTITIES: { readonly [name: string]: string } = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };
const unescapeXml = (text: string): string =>
  text.replaceAll(/&(lt|gt|amp|quot|apos|#\d+|#x[0-9a-fA-F]+);/g, (whole, name: string) => {
    if (!name.startsWith("#")) return ENTITIES[name] ?? whole;
    const code = name.startsWith("#x") ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });

/** Returns the resources of each chunk, one entry for every copy of a chunk: `2:ncpus=2:mpiprocs=2+1:ncpus=1` gives three entries. */
export function chunksOf(attrs: Attrs): readonly { readonly [resource: string]: string }[] {
  const select = textOf(attrs, "schedselect") ?? String(resourcesOf(attrs)["select"] ?? "1:ncpus=1");
  const chunks = eachChunk(readSelect(select) ?? { chunks: [] });
  return chunks.map(({ pairs }) => Object.fromEntries(pairs.map(({ name, text }) => [name, text])));
}
