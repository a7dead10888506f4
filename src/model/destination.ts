// The destination of a job or the target of a command: `queue`, `@server` or `queue@server`
// (docs/reference/commands.md 0).

import { QUEUE_NAME_LENGTH_MAX } from "./object-names.ts";

/** A destination. Either queue or server may be "". An empty text, which stands for the defaults, is not parsed here. */
export type Destination = { readonly queue: string; readonly server: string };

const QUEUE = /^[A-Za-z0-9][A-Za-z0-9_-]*$/;
const SERVER = /^[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?(?::[0-9]{1,5})?$/;

/** Parses a destination. Returns null if the text is malformed. */
export function parseDestination(text: string): Destination | null {
  const at = text.indexOf("@");
  const queue = at < 0 ? text : text.slice(0, at);
  const server = at < 0 ? "" : text.slice(at + 1);
  if (queue === "" && at < 0) return null;
  if (queue !== "" && (queue.length > QUEUE_NAME_LENGTH_MAX || !QUEUE.test(queue))) return null;
  return at >= 0 && !SERVER.test(server) ? null : { queue, server };
}

export function destinationText({ queue, server }: Destination): string {
  return server === "" ? queue : `${queue}@${server}`;
}
