// partita: makes, starts, stops and looks after a complex. A replay of a trace whose options are plain begins at once; every other call is
// read by yargs (calls.ts).

import { messageOf, nameOf } from "#support/caught.ts";
import { watchReader } from "./complex/reader-gone.ts";
import { playSim } from "./sim/sim-command.ts";
import { plainOptions } from "./sim/sim-options.ts";

watchReader();
try {
  const [call, ...words] = process.argv.slice(2);
  const options = call === "sim" ? plainOptions(words) : null;
  if (options !== null) await playSim(options);
  else await (await import("./calls.ts")).makeCall();
} catch (error) {
  // By name: what lies in a bundle of its own has these classes once more.
  const expected = ["AdminError", "ConfError", "ServerUnreachable", "StoreError"].includes(nameOf(error));
  const system = typeof (error as NodeJS.ErrnoException).syscall === "string";
  if (!expected && !system) throw error;
  process.stderr.write(`partita: ${messageOf(error)}\n`);
  if (nameOf(error) === "ServerUnreachable") process.stderr.write("partita status shows what runs, partita start starts the daemons.\n");
  process.exitCode = 1;
}
