// Destinations as users type them (docs/reference/commands.md 0): queue, @server, queue@server. Pure.

const QUEUE_NAME_MAX = 15;

export type Destination = { readonly queue: string; readonly server: string | null };

/** Parses a destination. An empty text means the default queue. Returns null if the text is malformed. */
export function parseDestination(text: string): Destination | null {
  const at = text.indexOf("@");
  const queue = at < 0 ? text : text.slice(0, at);
  const server = at < 0 ? null : text.slice(at + 1);
  if (queue.length > QUEUE_NAME_MAX || /\s/.test(text)) return null;
  if (server !== null && (server === "" || server.includes("@"))) return null;
  return { queue, server };
}
