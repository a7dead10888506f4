// The parameters of a campaign, one for each task. A campaign may have millions of them, so they are kept as one text with the offsets of its lines, and not as
// objects. Pure.
//
// P1. A parameter is one line without blanks at its ends. Its first word names the job. Lines without a word are left out.
// P2. No two parameters of a campaign are equal.

import { splitWords } from "#model/values/words.ts";
import { nth } from "#support/assert.ts";

/** count: the number of tasks. text null: the parameters are the numbers from 0 to count - 1. starts: the offsets of the lines in the text. */
export type Parameters = { readonly count: number; readonly text: string | null; readonly starts: Uint32Array };

/** What is wrong with a parameter. line: the number of its line in the text, from 1. */
export type ParameterFault = { readonly line: number; readonly text: string };

export type ParameterLimits = { readonly parameters_max: number; readonly characters_max: number };

const NO_STARTS = new Uint32Array(0);

/** The parameters 0 to count - 1. */
export const countedParameters = (count: number): Parameters => ({ count, text: null, starts: NO_STARTS });

/** Reads the text of a file of parameters: one in each line. */
export function parametersOf(text: string, limits: ParameterLimits): Parameters | ParameterFault {
  if (text.length > limits.characters_max) return { line: 1, text: `the parameters have more than ${limits.characters_max} characters` };
  const starts = new OffsetList();
  const seen = new LineSet(text);
  let line = 0;
  for (let begin = 0; begin < text.length; ) {
    line++;
    const end = endOfLine(text, begin);
    const first = skipBlanks(text, begin, end);
    if (first < end) {
      if (starts.length === limits.parameters_max) return { line, text: `more than ${limits.parameters_max} parameters` };
      const fault = lineFault(text, first, end);
      if (fault !== null) return { line, text: fault };
      if (!seen.add(first)) return { line, text: `the parameter ${shown(lineAt(text, first))} stands here again` };
      starts.push(first);
    }
    begin = end + 1;
  }
  return starts.length === 0 ? { line: 1, text: "there is no parameter" } : { count: starts.length, text, starts: starts.finished() };
}

/** Returns a parameter. index: 0 to count - 1. */
export function parameterAt({ text, starts, count }: Parameters, index: number): string {
  if (text !== null) return lineAt(text, nth(starts, index));
  if (!Number.isInteger(index) || index < 0 || index >= count) throw new RangeError(`there is no parameter ${index} of ${count}`);
  return String(index);
}

/** Returns the words of a parameter. On the command line of a job they follow the words of exec_file. */
export const parameterWords = (parameters: Parameters, index: number): readonly string[] =>
  splitWords(parameterAt(parameters, index), "removed") ?? [];

/** Returns the first word of a parameter, which names its job. */
export const parameterName = (parameters: Parameters, index: number): string => parameterWords(parameters, index)[0] ?? "";

function lineFault(text: string, first: number, end: number): string | null {
  let isQuoted = false;
  for (let at = first; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === 0) return "a parameter with a NUL character";
    if (code === 0x22 || code === 0x27 || code === 0x5c) isQuoted = true;
  }
  return isQuoted && splitWords(text.slice(first, end), "removed") === null ? "a quote is not closed" : null;
}

const endOfLine = (text: string, begin: number): number => {
  const end = text.indexOf("\n", begin);
  return end < 0 ? text.length : end;
};

function skipBlanks(text: string, begin: number, end: number): number {
  let at = begin;
  while (at < end && isBlank(text.charCodeAt(at))) at++;
  return at;
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09 || code === 0x0d;

/** Returns the offset after the last character of a line that is not blank. */
function lastOf(text: string, first: number): number {
  let end = endOfLine(text, first);
  while (end > first && isBlank(text.charCodeAt(end - 1))) end--;
  return end;
}

const lineAt = (text: string, first: number): string => text.slice(first, lastOf(text, first));

const shown = (text: string): string => JSON.stringify(text.length <= 80 ? text : `${text.slice(0, 77)}...`);

/** A growing list of offsets. */
class OffsetList {
  #items = new Uint32Array(1024);
  length = 0;

  push(offset: number): void {
    if (this.length === this.#items.length) {
      const larger = new Uint32Array(this.#items.length * 2);
      larger.set(this.#items);
      this.#items = larger;
    }
    this.#items[this.length++] = offset;
  }

  finished(): Uint32Array {
    return this.#items.slice(0, this.length);
  }
}

/** The largest mean number of slots of other lines that a search may pass. A larger mean is a sign of lines that were made to have equal hashes. */
const STEPS_A_LINE = 32;

/**
 * The set of the lines seen so far: a hash table of offsets, which needs 8 to 16 bytes for each line. The hash function is public, so a user could write lines with
 * equal hashes. The lines are then moved to a Set, whose hash function nobody can predict.
 */
class LineSet {
  readonly #text: string;
  /** offset + 1 of each line; 0: free */
  #slots = new Uint32Array(2048);
  #count = 0;
  #steps = 0;
  #set: Set<string> | null = null;

  constructor(text: string) {
    this.#text = text;
  }

  /** Adds the line that begins at an offset. Returns false if an equal line is there. */
  add(first: number): boolean {
    if (this.#set === null && this.#steps > STEPS_A_LINE * (this.#count + 1000)) this.#handOver();
    if (this.#set !== null) {
      const size = this.#set.size;
      return this.#set.add(lineAt(this.#text, first)).size > size;
    }
    if (2 * (this.#count + 1) > this.#slots.length) this.#grow();
    const slot = this.#slotOf(first);
    if (this.#slots[slot] !== 0) return false;
    this.#slots[slot] = first + 1;
    this.#count++;
    return true;
  }

  /** Returns the slot of an equal line, or the free slot for this one. */
  #slotOf(first: number): number {
    const end = lastOf(this.#text, first);
    const mask = this.#slots.length - 1;
    for (let slot = this.#hash(first, end) & mask; ; slot = (slot + 1) & mask) {
      const other = this.#slots[slot] ?? 0;
      if (other === 0 || this.#isEqual(other - 1, first, end)) return slot;
      this.#steps++;
    }
  }

  #handOver(): void {
    this.#set = new Set();
    for (const item of this.#slots) if (item !== 0) this.#set.add(lineAt(this.#text, item - 1));
    this.#slots = new Uint32Array(0);
  }

  /** FNV-1a over the UTF-16 units of the line. The bits are mixed at the end, because only the low bits select a slot. */
  #hash(first: number, end: number): number {
    let hash = 0x811c9dc5;
    for (let at = first; at < end; at++) hash = Math.imul(hash ^ this.#text.charCodeAt(at), 0x01000193);
    hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b);
    return (hash ^ (hash >>> 15)) >>> 0;
  }

  #isEqual(other: number, first: number, end: number): boolean {
    const length = end - first;
    if (lastOf(this.#text, other) - other !== length) return false;
    for (let at = 0; at < length; at++) if (this.#text.charCodeAt(other + at) !== this.#text.charCodeAt(first + at)) return false;
    return true;
  }

  #grow(): void {
    const before = this.#slots;
    this.#steps = 0;
    this.#slots = new Uint32Array(before.length * 2);
    for (const item of before) if (item !== 0) this.#slots[this.#slotOf(item - 1)] = item;
  }
}
