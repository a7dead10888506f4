// Prepares the environment before ink is loaded. If the environment says that the program runs in an automatic test (CI),
// ink draws only its last picture. A user at a terminal must see all pictures, even if such a variable is set.

/** Removes the variables that announce an automatic test. Must be called only if the streams are a terminal. */
export function drawAlways(env: NodeJS.ProcessEnv): void {
  delete env["CI"];
  delete env["CONTINUOUS_INTEGRATION"];
}
