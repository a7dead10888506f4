// Prepares the environment before ink is loaded. If the environment indicates a test run (CI), ink draws only its last picture. A
// user at a terminal of such a machine must see all of them.

/** Must be called after the streams are known to be a terminal. */
export function drawAlways(env: NodeJS.ProcessEnv): void {
  delete env["CI"];
  delete env["CONTINUOUS_INTEGRATION"];
}
