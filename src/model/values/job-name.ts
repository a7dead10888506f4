// Names of jobs and reservations (qsub -N): 1 to 230 printable characters without blanks and slashes. The manual forbids a
// leading `-`, but PBS itself accepts it.

const JOB_NAME_LENGTH_MAX = 230;

export type JobNameFault = "illegal" | "too long";

/** The fault of a name, or null if the name is legal. */
export function jobNameFault(name: string): JobNameFault | null {
  if (name === "" || !PRINTABLE.test(name)) return "illegal";
  return [...name].length > JOB_NAME_LENGTH_MAX ? "too long" : null;
}

const PRINTABLE = /^[^\s/\p{Cc}\p{Cs}]+$/u;
