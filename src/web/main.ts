// pbs_web: the REST interface of a complex. `partita web start` starts it; it takes no arguments. It ends at SIGTERM, and it can end and start again at any time,
// because it keeps nothing but its file of tokens.

import { ownerFault, runSideDaemon, tellStarter } from "#server/shell/daemon-start.ts";
import type { Conf } from "#support/conf.ts";
import { homeFault } from "#support/trusted-home.ts";
import { startService } from "./shell/service.ts";

const ADDRESS = "127.0.0.1";

/** Serves until a signal ends this process. */
async function serve(conf: Conf, note: (text: string) => void, ended: Promise<void>): Promise<void> {
  const service = await startService({ conf, address: ADDRESS, port: Number(process.env["PARTITA_WEB_PORT"]), note });
  note(`serves http://${ADDRESS}:${service.port}, pid ${process.pid}`);
  tellStarter(`port ${service.port}\nready\n`);
  await ended;
  await service.close();
}

function mayRun(conf: Conf): string | null {
  if (conf.mode === "system") return "works only in user mode yet: in system mode it would have to act as the users of its tokens";
  return ownerFault(conf, false) ?? homeFault(conf, conf.home);
}

runSideDaemon({ name: "pbs_web", word: "web", lock_mode: 0o600, mayRun, serve });
