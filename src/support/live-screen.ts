// Before ink is loaded: it draws only its last picture where the environment says that this is a run of tests (CI). Whoever sits at a terminal of such a
// machine wants to see all of them.

/** To be called once the streams are known to be a terminal. */
export function drawAlways(env: NodeJS.ProcessEnv): void {
  delete env["CI"];
  delete env["CONTINUOUS_INTEGRATION"];
}
