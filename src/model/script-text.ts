// A job script as the text that is sent and kept. Scripts are bytes to PBS: those that are no UTF-8 (comments in Latin-1, as old as the site) become one
// character a byte behind a mark, so that they reach their job as they were. Pure.

/** A noncharacter, with which no text begins. */
const MARK = "\uFDD0";

/** The script of bytes given as one character each. */
export const markedScript = (latin1: string): string => MARK + latin1;

/** Whether a text cannot stand for itself. */
export const isMarkedScript = (script: string): boolean => script.startsWith(MARK);

/** The script's characters, for those who look for directives: those of a marked one by their Latin-1 meaning. */
export const scriptCharacters = (script: string): string => (isMarkedScript(script) ? script.slice(MARK.length) : script);

/** How its characters become the bytes of the file it came from. */
export const scriptEncoding = (script: string): "latin1" | "utf8" => (isMarkedScript(script) ? "latin1" : "utf8");
