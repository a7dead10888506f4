// A catch clause may catch a value of any type. These functions read its message, code and name without trusting its type.
// Errors of another realm count as errors too. Pure.

/** The message of an error; any other value as text. */
export function messageOf(caught: unknown): string {
  const message = memberOf(caught, "message");
  return typeof message === "string" ? message : String(caught);
}

/** The code of an error of the system or of a library, such as ENOENT, or undefined if it has none. */
export function codeOf(caught: unknown): string | undefined {
  const code = memberOf(caught, "code");
  return typeof code === "string" ? code : undefined;
}

/** The number of a system error, negative as in libuv, or undefined if the value has none. */
export function errnoOf(caught: unknown): number | undefined {
  const errno = memberOf(caught, "errno");
  return typeof errno === "number" ? errno : undefined;
}

/** Whether the value is the error of a system call, such as open or connect. */
export const isSystemError = (caught: unknown): boolean => typeof memberOf(caught, "syscall") === "string";

/** The name of an error's class, or "" if the value is not an error. */
export function nameOf(caught: unknown): string {
  const name = memberOf(caught, "name");
  return typeof name === "string" ? name : "";
}

/** The error with its stack, for a log. */
export function stackOf(caught: unknown): string {
  const stack = memberOf(caught, "stack");
  return typeof stack === "string" ? stack : String(caught);
}

function memberOf(caught: unknown, name: string): unknown {
  return typeof caught === "object" && caught !== null ? Reflect.get(caught, name) : undefined;
}
