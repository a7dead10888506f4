// Reads the values of a section of a campaign file whose shape was checked. A key that the section does not have is read from the top of the file. Also collects the
// faults that the check of the shape cannot find. Pure.

import { splitWords } from "#model/values/words.ts";
import type { JsonNode } from "./located-json.ts";
import { durationOf, type ShapeFault } from "./shape.ts";

const NOTHING: JsonNode = { kind: "object", at: 0, members: new Map() };

export class Section {
  readonly #node: JsonNode;
  readonly #top: Section | null;
  readonly #path: string;
  /** faults of this section and of all its parts */
  readonly faults: ShapeFault[];

  /** top: the section that has the defaults; null: there are none. */
  constructor(node: JsonNode, top: Section | null, path: string, faults: ShapeFault[] = []) {
    this.#node = node;
    this.#top = top;
    this.#path = path;
    this.faults = faults;
  }

  hasOwn(key: string): boolean {
    return this.#own(key) !== undefined;
  }

  has(key: string): boolean {
    return this.#find(key) !== undefined;
  }

  text(key: string): string | null {
    const node = this.#find(key);
    return node?.kind === "text" ? node.value : null;
  }

  number(key: string): number | null {
    const node = this.#find(key);
    return node?.kind === "number" ? node.value : null;
  }

  flag(key: string): boolean | null {
    const node = this.#find(key);
    return node?.kind === "flag" ? node.value : null;
  }

  /** Returns the seconds of a duration. */
  duration(key: string): number | null {
    const node = this.#find(key);
    return node === undefined ? null : durationOf(node);
  }

  texts(key: string): readonly string[] {
    const node = this.#find(key);
    return node?.kind !== "list" ? [] : node.items.flatMap((item) => (item.kind === "text" ? [item.value] : []));
  }

  /** Returns the words of a command line; null: there is none, or a quote in it is not closed, which is a fault. */
  words(key: string): readonly string[] | null {
    const line = this.text(key);
    return line === null ? null : (splitWords(line, "removed") ?? this.fault(key, "a quote is not closed", ["?"]));
  }

  /** Returns the words of each command line of a list. */
  commands(key: string): readonly (readonly string[])[] {
    return this.texts(key).map((line, index) => {
      const words = splitWords(line, "removed");
      if (words === null) return this.fault(`${key}.${index}`, "a quote is not closed", []);
      return words.length > 0 ? words : this.fault(`${key}.${index}`, "a command line without a word", []);
    });
  }

  /** Returns the section of an object inside this one. If there is no such object, the section is empty. */
  part(key: string): Section {
    return new Section(this.#find(key) ?? NOTHING, null, this.#pathOf(key), this.faults);
  }

  parts(key: string): readonly Section[] {
    const node = this.#find(key);
    return node?.kind !== "list"
      ? []
      : node.items.map((item, index) => new Section(item, null, `${this.#pathOf(key)}.${index}`, this.faults));
  }

  /** Returns the sections of the named objects inside an object. Their defaults are the keys of this section. */
  sections(key: string): ReadonlyMap<string, Section> {
    const node = this.#own(key);
    if (node?.kind !== "object") return new Map();
    return new Map(
      [...node.members].map(([name, { value }]) => [name, new Section(value, this, `${this.#pathOf(key)}.${name}`, this.faults)]),
    );
  }

  /**
   * Records a fault. key: the key that has the fault, `params.3` for the fourth value of the list params, or "" for the whole section. instead: returned for the caller to
   * go on with.
   */
  fault(key: string, text: string): null;
  fault<T>(key: string, text: string, instead: T): T;
  fault<T>(key: string, text: string, instead?: T): T | null {
    const [name = "", index] = key.split(".");
    const holder = this.hasOwn(name) || key === "" || this.#top === null ? this : this.#top;
    const node = key === "" ? this.#node : (holder.#own(name) ?? this.#node);
    const item = node.kind === "list" && index !== undefined ? node.items[Number(index)] : undefined;
    // A key at the top of the file may be wrong for one cluster only. The path therefore names the cluster, and the position is the position of the key.
    this.faults.push({ path: key === "" ? this.#path : this.#pathOf(key), at: (item ?? node).at, text });
    return instead ?? null;
  }

  #own(key: string): JsonNode | undefined {
    return this.#node.kind === "object" ? this.#node.members.get(key)?.value : undefined;
  }

  #find(key: string): JsonNode | undefined {
    const own = this.#own(key);
    return own !== undefined || this.#top === null ? own : this.#top.#own(key);
  }

  #pathOf(key: string): string {
    return this.#path === "" ? key : `${this.#path}.${key}`;
  }
}
