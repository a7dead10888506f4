// Reads the entries of an exec_host, `host/slot*ncpus+...`, and their hosts. This file imports nothing, because commands
// load it and must start fast.
//
// The functions are for texts that the server has written, and refuse nothing. parseExecHost (exec-host.ts) checks a text.

/** The entries as written; an empty list for an empty text. */
export function entryTexts(exec_host: string): readonly string[] {
  return exec_host === "" ? [] : exec_host.split("+");
}

/** The host of each entry, in order: `n1/0*2+n2/1+n1/1` -> n1, n2, n1. */
export function chunkHosts(exec_host: string): readonly string[] {
  return entryTexts(exec_host).map(firstHost);
}

/** The hosts in order of appearance, each once. The first is the host of the mother superior. PBS_NODENUM counts these hosts. */
export function hostsOf(exec_host: string): readonly string[] {
  return hasSeveralEntries(exec_host) ? [...new Set(chunkHosts(exec_host))] : chunkHosts(exec_host);
}

/** The host of the first entry, which is the host of the mother superior; "" for an empty text. */
export function firstHost(exec_host: string): string {
  for (let at = 0; at < exec_host.length; at++) {
    const character = exec_host[at];
    if (character === "/" || character === "+") return exec_host.slice(0, at);
  }
  return exec_host;
}

/** Whether the text has more than one entry. All entries may be on the same host. */
export const hasSeveralEntries = (exec_host: string | undefined): boolean => exec_host?.includes("+") === true;

/** The exec_host with other names of hosts; slots and processors do not change. */
export function renameHosts(exec_host: string, rename: (host: string) => string): string {
  const renamed = (entry: string): string => {
    const host = firstHost(entry);
    const name = rename(host);
    return name === host ? entry : name + entry.slice(host.length);
  };
  return hasSeveralEntries(exec_host) ? entryTexts(exec_host).map(renamed).join("+") : renamed(exec_host);
}
