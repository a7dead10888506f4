// What a catch clause has caught may be anything: its message, code and name, read without trusting its type. An error of another realm is one, too. Pure.

/** The message of an error; whatever else was thrown, as text. */
export function messageOf(caught: unknown): string {
  const message = memberOf(caught, "message");
  return typeof message === "string" ? message : String(caught);
}

/** The code of an error of the system or of a library, such as ENOENT; undefined: it has none. */
export function codeOf(caught: unknown): string | undefined {
  const code = memberOf(caught, "code");
  return typeof code === "string" ? code : undefined;
}

/** The name of an error's class; "" of what is no error. */
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
