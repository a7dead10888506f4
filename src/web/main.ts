// pbs_web: the REST interface of a complex. `partita web start` starts it; it takes no arguments. It ends at SIGTERM, and it can end and start again at any time,
// because it keeps nothing but its file of tokens.

import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { tellStarter } from "#server/shell/daemon-start.ts";
import { messageOf, stackOf } from "#support/caught.ts";
import { type Conf, readConf } from "#support/conf.ts";
import { closeForeignDescriptors } from "#support/descriptors.ts";
import { takeLock } from "#support/libc/lock-file.ts";
import { openLog } from "#support/log.ts";
import { LOG_EVENT, LOG_MASK } from "#support/log-event.ts";
import { homeFault } from "#support/trusted-home.ts";
import { startService } from "./shell/service.ts";
import { webDirectory } from "./shell/token-file.ts";

const READY_FD = 3;
const ADDRESS = "127.0.0.1";

async function main(): Promise<number> {
  closeForeignDescriptors(...(process.env["PARTITA_READY_FD"] === undefined ? [] : [READY_FD]));
  process.title = "pbs_web";
  process.umask(0o022);
  const conf = readConf();
  const refusal = mayRun(conf);
  if (refusal !== null) return refused(refusal);
  mkdirSync(webDirectory(conf.home), { recursive: true, mode: 0o700 });
  const lock = takeLock(join(webDirectory(conf.home), "web.lock"));
  if ("owner_pid" in lock) return refused(`another pbs_web runs (pid ${lock.owner_pid ?? "unknown"})`);
  mkdirSync(join(conf.home, "web_logs"), { recursive: true, mode: 0o755 });
  const log = openLog({ dir: join(conf.home, "web_logs"), daemon: "pbs_web", mask: LOG_MASK.server, highres: conf.log_highres });
  const note = (text: string, event: number = LOG_EVENT.SYSTEM): void => log.record(event, "Svr", "pbs_web", text);
  process.on("SIGHUP", () => log.reopen());
  try {
    await serve(conf, note);
    return 0;
  } catch (error) {
    note(`ended by an error: ${stackOf(error)}`, LOG_EVENT.ERROR);
    return refused(messageOf(error));
  } finally {
    note("ends");
    log.close();
    lock.held.release();
  }
}

/** Serves until a signal ends this process. */
async function serve(conf: Conf, note: (text: string) => void): Promise<void> {
  const ended = Promise.withResolvers<void>();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => ended.resolve());
  const service = await startService({ conf, address: ADDRESS, port: Number(process.env["PARTITA_WEB_PORT"]), note });
  note(`serves http://${ADDRESS}:${service.port}, pid ${process.pid}`);
  tellStarter(`port ${service.port}\nready\n`);
  await ended.promise;
  await service.close();
}

function mayRun(conf: Conf): string | null {
  if (conf.mode === "system") return "works only in user mode yet: in system mode it would have to act as the users of its tokens";
  const owner = statSync(conf.home, { throwIfNoEntry: false })?.uid;
  if (owner === undefined) return `PBS_HOME ${conf.home} does not exist`;
  if (owner !== process.getuid?.()) return `PBS_HOME ${conf.home} belongs to another user`;
  return homeFault(conf, conf.home);
}

function refused(text: string): number {
  tellStarter(`pbs_web: ${text}\n`);
  return 1;
}

main().then(
  (status) => process.exit(status),
  (error: unknown) => process.exit(refused(stackOf(error))),
);
