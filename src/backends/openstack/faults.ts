// Tells the kind of an error of OpenStack by its status and text. Pure.

import { z } from "zod";
import { cleanText, type Fault, type FaultKind } from "../contract/fault.ts";

/** Errors have the form {"NAME": {"code": 403, "message": "..."}}; others are shown as they are. */
const shape = z.record(z.string(), z.object({ message: z.string() }).loose());

/** Returns the fault of an answer with this status. what: the request. secrets: taken out of the text. */
export function openStackFault(what: string, status: number, text: string, secrets: readonly string[]): Fault {
  const message = cleanText(messageIn(text), secrets);
  return { kind: kindOf(status, message), text: cleanText(`${what}: ${status} ${message}`, secrets) };
}

function messageIn(text: string): string {
  try {
    const parsed = shape.safeParse(JSON.parse(text));
    return parsed.success ? (Object.values(parsed.data)[0]?.message ?? text) : text;
  } catch {
    return text;
  }
}

function kindOf(status: number, message: string): FaultKind {
  if (/quota|limit exceeded|too many/i.test(message) || status === 413 || status === 429) return "limit";
  if (/no valid host/i.test(message)) return "limit";
  if (status === 401 || status === 403 || status === 404) return "configuration";
  if (status === 400) return /flavor|flavour|disk is too small|memory/i.test(message) ? "impossible" : "configuration";
  return "transient";
}
