// A catch clause may catch a value of any type. These functions read the value's message, code and name without trusting its type.
// Errors of another realm (such as a vm context) also count as errors. Pure.

/** Returns the message of an error, or any other value as text. */
export function messageOf(caught: unknown): string {
  const message = memberOf(caught, "message");
  return typeof message === "string" ? message : String(caught);
}

/** Returns the code of an error of the system or of a library, such as ENOENT; undefined: it has none. */
export function codeOf(caught: unknown): string | undefined {
  const code = memberOf(caught, "code");
  return typeof code === "string" ? code : undefined;
}

/** Returns the number of a system error, which is negative as in libuv; undefined: the value has none. */
export function errnoOf(caught: unknown): number | undefined {
  const errno = memberOf(caught, "errno");
  return typeof errno === "number" ? errno : undefined;
}

/** Whether the value is the error of a system call, such as open or connect. */
export const isSystemError = (caught: unknown): boolean => typeof memberOf(caught, "syscall") === "string";

/** Returns the name of an error's class; "": the value is not an error. */
export function nameOf(caught: unknown): string {
  const name = memberOf(caught, "name");
  return typeof name === "string" ? name : "";
}

/** Returns the text of an error with its stack, for a log. */
export function stackOf(caught: unknown): string {
  const stack = memberOf(caught, "stack");
  return typeof stack === "string" ? stack : String(caught);
}

function memberOf(caught: unknown, name: string): unknown {
  return typeof caught === "object" && caught !== null ? Reflect.get(caught, name) : undefined;
}
