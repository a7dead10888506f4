// Computes which tokens a grammar accepts next. For this, it goes through the grammar that chevrotain has recorded from the
// rules of the parser. (The content assist of chevrotain itself was removed in version 13.) Pure.
//
// C1. The grammar must not be left-recursive. The state between two tokens is a set of positions. A position is a list of
//     those parts of the grammar that must still follow.

import {
  Alternation,
  Alternative,
  type IProduction,
  type IToken,
  NonTerminal,
  Option,
  Repetition,
  RepetitionMandatory,
  RepetitionMandatoryWithSeparator,
  RepetitionWithSeparator,
  type Rule,
  Terminal,
  type TokenType,
  tokenMatcher,
} from "chevrotain";

/** A position: the parts that must still follow, the next part first; null: no further part is needed. */
type Rest = { readonly part: Part; readonly next: Rest } | null;
/** A part of the grammar: a production, or the further turns of a repetition with separators. */
type Part = IProduction | { readonly turns: RepetitionWithSeparator | RepetitionMandatoryWithSeparator };
/** A token type that may come next, and the position after it. */
type Step = { readonly type: TokenType; readonly next: Rest };

/** Returns the token types that may follow these tokens, each once, in the order of the grammar. If the tokens cannot begin the rule, there are none. */
export function nextTokenTypes(rule: Rule, tokens: readonly IToken[]): readonly TokenType[] {
  let steps = stepsFrom(inOrder(rule.definition, null));
  for (const token of tokens) steps = steps.filter(({ type }) => tokenMatcher(token, type)).flatMap(({ next }) => stepsFrom(next));
  return [...new Set(steps.map(({ type }) => type))];
}

const inOrder = (parts: readonly Part[], next: Rest): Rest => parts.reduceRight<Rest>((rest, part) => ({ part, next: rest }), next);

function stepsFrom(rest: Rest): readonly Step[] {
  if (rest === null) return [];
  const { part, next } = rest;
  if ("turns" in part) {
    const turn = inOrder(part.turns.definition, { part, next });
    return [{ type: part.turns.separator, next: turn }, ...stepsFrom(next)];
  }
  if (part instanceof Terminal) return [{ type: part.terminalType, next }];
  if (part instanceof NonTerminal) return stepsFrom(inOrder(part.referencedRule.definition, next));
  if (part instanceof Alternation) return part.definition.flatMap((each) => stepsFrom({ part: each, next }));
  if (part instanceof Alternative) return stepsFrom(inOrder(part.definition, next));
  if (part instanceof Option) return [...stepsFrom(inOrder(part.definition, next)), ...stepsFrom(next)];
  if (part instanceof Repetition) return [...stepsFrom(inOrder(part.definition, { part, next })), ...stepsFrom(next)];
  if (part instanceof RepetitionMandatory) return stepsFrom(inOrder(part.definition, { part: new Repetition(part), next }));
  if (part instanceof RepetitionMandatoryWithSeparator) return stepsFrom(inOrder(part.definition, { part: { turns: part }, next }));
  if (part instanceof RepetitionWithSeparator)
    return [...stepsFrom(inOrder(part.definition, { part: { turns: part }, next })), ...stepsFrom(next)];
  throw new Error("a production that the grammar of qmgr does not have");
}
