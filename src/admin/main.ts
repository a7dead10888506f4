// partita: creates, starts, stops and maintains a complex. A simulation with plain options (sim/sim-options.ts) is started
// directly. All other calls are parsed by yargs (calls.ts).

import { isSystemError, messageOf, nameOf } from "#support/caught.ts";
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
  // The classes are compared by name, because each bundle has its own copy of them.
  const expected = ["AdminError", "ConfError", "CredentialsError", "QuestionError", "ServerUnreachable", "StoreError"].includes(
    nameOf(error),
  );
  const system = isSystemError(error);
  if (!expected && !system) throw error;
  process.stderr.write(`partita: ${messageOf(error)}\n`);
  if (nameOf(error) === "ServerUnreachable") process.stderr.write("partita status shows what runs, partita start starts the daemons.\n");
  process.exitCode = 1;
}
