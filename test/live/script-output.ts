// What a job's script printed, without what the login shell printed before it: on many machines /etc/profile greets whoever logs in.

const MARK = "-- the script begins --";

/** The first line of a script whose output is read by ofScript. */
export const BEGIN = `echo '${MARK}'`;

/** What stands after the mark in a job's output. Throws when the mark is missing. */
export function ofScript(output: string): string {
  const at = output.indexOf(`${MARK}\n`);
  if (at < 0) throw new Error(`the script did not begin; the output is: ${output}`);
  return output.slice(at + MARK.length + 1);
}
