// Runs an admission rule of the grid in a context of its own. The rule sees `campaign` (user, type, jobs, jdl), which it may change, and `refuse(reason)`.
//
// U1. Only texts cross the border of the context: no object of this program can be reached from the rule.

import { constants, createContext, Script } from "node:vm";

const PRELUDE = new Script(
  `(input) => {
    "use strict";
    const { parse, stringify } = JSON;
    class Refusal { constructor(reason) { this.reason = reason; } }
    const campaign = parse(input);
    globalThis.campaign = campaign;
    globalThis.refuse = (reason) => { throw new Refusal(reason); };
    return (threw, thrown) => {
      if (!threw) return stringify({ verdict: "admit", type: campaign.type, jdl: campaign.jdl });
      if (thrown instanceof Refusal) return stringify({ verdict: "refuse", reason: String(thrown.reason) });
      return stringify({ verdict: "error", error: String(thrown instanceof Error ? thrown.message : thrown) });
    };
  }`,
  { filename: "rule" },
);

/** Runs a rule on a campaign (JSON text). Returns its verdict as JSON text. */
export function runRule(rule: Script, input: string, limit_ms: number): string {
  const context = createContext(constants.DONT_CONTEXTIFY, { codeGeneration: { strings: false, wasm: false } });
  const prepare: (input: string) => (threw: boolean, thrown: unknown) => unknown = PRELUDE.runInContext(context);
  const finish = prepare(input);
  let threw = false;
  let thrown: unknown;
  try {
    rule.runInContext(context, { timeout: limit_ms });
  } catch (error) {
    threw = true;
    thrown = error;
  }
  const text = finish(threw, thrown);
  return typeof text === "string" ? text : JSON.stringify({ verdict: "error", error: "the rule gave no verdict" });
}
