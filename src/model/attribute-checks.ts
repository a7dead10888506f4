// The checks of values that several rows of the attribute tables share (AttributeOptions.check). A check returns true if the
// value is legal.

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROL = /[\0-\x1f\x7f]/;

/**
 * Whether a text contains no control character. A control character could end a line of a file or a log, or
 * send a command to a reader's terminal.
 */
export function isPrintable(text: string): boolean {
  return !CONTROL.test(text);
}

/** Whether a text is an absolute path such as `/dir/file`, without control characters and without `..`. */
export function isAbsolutePath(text: string): boolean {
  return text.startsWith("/") && isPrintable(text) && !text.split("/").includes("..");
}

/** Whether a text contains no control characters except newlines and tabs, so that it may have several lines. */
export function isPrintableText(text: string): boolean {
  return isPrintable(text.replace(/[\t\n]/g, ""));
}

/** The same text with `?` for each character that isPrintableText refuses. */
export function printableText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced
  return text.replace(/[\0-\x08\x0b-\x1f\x7f]/g, "?");
}

/** Whether a text can be a recipient of mail. A blank would split it into several recipients. */
export function isMailUser(text: string): boolean {
  return !/\s/.test(text);
}

/** Whether a text can be the sender of mail. The sender is passed to the mail program as an argument. */
export function isMailSender(text: string): boolean {
  return isMailUser(text) && !text.startsWith("-");
}
