// The refusal of a call, for tables: `15014 Illegal attribute ...`. Any thrown value that is not a Reject fails the test.

import { Reject } from "#model/pbse.ts";

export function refusal(call: () => unknown): string {
  try {
    const value = call();
    return `accepted: ${JSON.stringify(value)}`;
  } catch (error) {
    if (error instanceof Reject) return `${error.code} ${error.text}`;
    throw error;
  }
}
