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
