// A job script as the text that is sent and stored. To PBS a script is a sequence of bytes. A script that is not UTF-8 (such as
// one with comments in Latin-1) becomes a mark followed by one character for each byte, so that the job gets the original
// bytes. Pure.

/** A Unicode noncharacter: no text begins with it. */
const MARK = "\uFDD0";

/** The marked text of a script given as one character per byte. */
export const markedScript = (latin1: string): string => MARK + latin1;

/** Whether the text is a marked script. */
export const isMarkedScript = (script: string): boolean => script.startsWith(MARK);

/** The characters of the script without the mark, for the search for directives. The characters of a marked script are Latin-1. */
export const scriptCharacters = (script: string): string => (isMarkedScript(script) ? script.slice(MARK.length) : script);

/** The encoding that turns the script's characters back into the bytes of its file. */
export const scriptEncoding = (script: string): "latin1" | "utf8" => (isMarkedScript(script) ? "latin1" : "utf8");
