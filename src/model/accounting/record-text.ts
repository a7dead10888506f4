// Reads accounting records (docs/reference/files.md 4): `MM/DD/YYYY HH:MM:SS;TYPE;ID;NAME=VALUE NAME=VALUE ...`. Made for millions of records: a text is
// searched in place, and only the wanted items become strings of their own. Pure.
//
// A1. A value in quotation marks ends at the first quotation mark that is followed by a blank or the end of the line, because PBS escapes nothing in it.
// A2. If a name occurs several times, the first item counts. Users choose the text of items such as account, so items are read one after the other: a
//     name inside of a quoted value is not an item.

/** One record. The positions belong to the text that was searched; the object is used again for the next record. */
export type RecordPlace = {
  /** the position of the record's first character */
  start: number;
  /** the position of the first item */
  items: number;
  /** the position behind the record's last character */
  end: number;
};

const BLANK = 32;
const QUOTE = 34;
const SEMICOLON = 59;
const DATE_LENGTH = "MM/DD/YYYY HH:MM:SS".length;

/**
 * Calls `visit` with each record of the types, in order. A line without the form of a record is passed over. An unfinished last line is not read.
 * types: characters, for example `ER`. Returns the position behind the last finished line, where the next piece of the file begins.
 */
export function eachRecord(text: string, types: string, visit: (place: RecordPlace) => void): number {
  const place: RecordPlace = { start: 0, items: 0, end: 0 };
  for (;;) {
    const end = text.indexOf("\n", place.start);
    if (end < 0) return place.start;
    place.end = end;
    if (isRecord(text, place, types)) visit(place);
    place.start = end + 1;
  }
}

/** Whether the line is a record of the types. If it is, sets the position of the items. */
function isRecord(text: string, place: RecordPlace, types: string): boolean {
  const at = place.start + DATE_LENGTH;
  if (at + 4 > place.end || text.charCodeAt(at) !== SEMICOLON || text.charCodeAt(at + 2) !== SEMICOLON) return false;
  if (!types.includes(text.charAt(at + 1))) return false;
  const end_of_id = text.indexOf(";", at + 3);
  if (end_of_id < 0 || end_of_id >= place.end) return false;
  place.items = end_of_id + 1;
  return true;
}

/** Returns the id of the job or reservation of a record. */
export function idOf(text: string, { start, items }: RecordPlace): string {
  return text.slice(start + DATE_LENGTH + 3, items - 1);
}

/** Returns the type of a record, for example `E`. */
export function typeOf(text: string, { start }: RecordPlace): string {
  return text.charAt(start + DATE_LENGTH + 1);
}

/** Returns the local date of a record as YYYY-MM-DD. */
export function dateOf(text: string, { start }: RecordPlace): string {
  return `${text.slice(start + 6, start + 10)}-${text.slice(start, start + 2)}-${text.slice(start + 3, start + 5)}`;
}

/**
 * Makes a function that returns the values of these items of a record, in the order of the names; undefined: the record has no such item. The returned
 * list is used again for the next record.
 */
export function itemReader(names: readonly string[]): (text: string, place: RecordPlace) => readonly (string | undefined)[] {
  // Few names have the same length and the same last character, so nearly every other item is passed over without a comparison of texts.
  const candidates = new Map<number, { readonly name: string; readonly at: number }[]>();
  for (const [at, name] of names.entries()) {
    const key = keyOf(name.length, name.charCodeAt(name.length - 1));
    candidates.set(key, [...(candidates.get(key) ?? []), { name, at }]);
  }
  const values: (string | undefined)[] = names.map(() => undefined);
  return (text, { items, end }) => {
    values.fill(undefined);
    for (let from = items; from < end; ) {
      const equals = text.indexOf("=", from);
      if (equals < 0 || equals >= end) break;
      // Words without `=` are the rest of a value that has quotation marks inside.
      const at = Math.max(from, text.lastIndexOf(" ", equals) + 1);
      const quoted = text.charCodeAt(equals + 1) === QUOTE;
      const value_end = quoted ? endOfQuoted(text, equals + 2, end) : endOfWord(text, equals + 1, end);
      for (const wanted of candidates.get(keyOf(equals - at, text.charCodeAt(equals - 1))) ?? NONE) {
        if (values[wanted.at] === undefined && text.startsWith(wanted.name, at))
          values[wanted.at] = quoted ? text.slice(equals + 2, value_end) : text.slice(equals + 1, value_end);
      }
      from = value_end + (quoted ? 2 : 1);
    }
    return values;
  };
}

const NONE: readonly never[] = [];
const keyOf = (length: number, last: number): number => length * 65_536 + last;

function endOfWord(text: string, from: number, end: number): number {
  const blank = text.indexOf(" ", from);
  return blank < 0 || blank > end ? end : blank;
}

/** Returns the position of the quotation mark that ends a value (A1), or the end of the record. */
function endOfQuoted(text: string, from: number, end: number): number {
  for (let at = text.indexOf('"', from); at >= 0 && at < end; at = text.indexOf('"', at + 1)) {
    if (at + 1 === end || text.charCodeAt(at + 1) === BLANK) return at;
  }
  return end;
}
