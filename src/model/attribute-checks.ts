// Checks of values that rows of the attribute tables share (AttributeOptions.check): true means that the value is legal.

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROL = /[\0-\x1f\x7f]/;

/** Whether a text has no control character. A control character would end a line of a file or a log, or drive the terminal of a reader. */
export function isPrintable(text: string): boolean {
  return !CONTROL.test(text);
}

/** `/dir/file`, without control characters and without `..`. */
export function isAbsolutePath(text: string): boolean {
  return text.startsWith("/") && isPrintable(text) && !text.split("/").includes("..");
}

/** Texts of several lines: newlines and tabs are no harm in them. */
export function isPrintableText(text: string): boolean {
  return isPrintable(text.replace(/[\t\n]/g, ""));
}

/** The same text with `?` for each character that isPrintableText refuses. */
export function printableText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced
  return text.replace(/[\0-\x08\x0b-\x1f\x7f]/g, "?");
}

/** A recipient of mail: no blanks, which would part it into several. */
export function isMailUser(text: string): boolean {
  return !/\s/.test(text);
}

/** The sender of mail, which is an argument of the mail program. */
export function isMailSender(text: string): boolean {
  return isMailUser(text) && !text.startsWith("-");
}
