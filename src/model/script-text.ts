// Job scripts as texts that can be sent and stored. For PBS a script is a sequence of bytes. If it is not UTF-8 (for example
// because it has comments in Latin-1), its text is a mark followed by one character for each byte. So the job gets the
// original bytes. Pure.

/** The mark: a Unicode noncharacter, with which no text begins. */
const MARK = "\uFDD0";

/** The text of a script that is not UTF-8. latin1: the script with one character for each byte. */
export const markedScript = (latin1: string): string => MARK + latin1;

/** Whether the text begins with the mark. */
export const isMarkedScript = (script: string): boolean => script.startsWith(MARK);

/** The characters of a script without the mark, in which directives are searched. */
export const scriptCharacters = (script: string): string => (isMarkedScript(script) ? script.slice(MARK.length) : script);

/** The encoding that makes the bytes of the original file from the script's characters. */
export const scriptEncoding = (script: string): "latin1" | "utf8" => (isMarkedScript(script) ? "latin1" : "utf8");
