// The output of a job's script without the output of the login shell before it: on many machines /etc/profile prints a
// greeting.

const MARK = "-- the script begins --";

/** The first line of a script whose output ofScript reads. */
export const BEGIN = `echo '${MARK}'`;

/** The text after the mark in a job's output. Throws if the mark is missing. */
export function ofScript(output: string): string {
  const at = output.indexOf(`${MARK}\n`);
  if (at < 0) throw new Error(`the script did not begin; the output is: ${output}`);
  return output.slice(at + MARK.length + 1);
}
