// `partita reset`: quickly brings the complex back to its state after init. It kills the daemons, creates PBS_HOME again and
// starts the daemons.

import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { finishJob } from "#mom/agent/file-work.ts";
import { readRecords } from "#mom/driver/record-log.ts";
import { connectServer } from "#protocol/client.ts";
import { storeKind } from "#store/store-choice.ts";
import type { Conf } from "#support/conf.ts";
import { AdminError, makeHome, programTree } from "../complex/complex-home.ts";
import { killDaemons, startDaemons, waitUntilUp } from "../complex/daemons.ts";

const NODE_CPUS = "16";

export async function resetComplex(conf: Conf): Promise<void> {
  if (storeKind(conf) === "postgres")
    throw new AdminError("reset empties PBS_HOME, and the store is in PostgreSQL: stop the complex and call pbs_server -t create");
  await killDaemons(conf);
  clearAwayRuns(conf);
  if (existsSync(conf.home)) for (const name of readdirSync(conf.home)) rmSync(join(conf.home, name), { recursive: true, force: true });
  makeHome(conf, join(programTree(), "etc"));
  await startDaemons(conf);
  await waitUntilUp(conf);
  const link = await connectServer(conf);
  const set = async (
    object: "server" | "node",
    name: string,
    attribute: { readonly name: string; readonly resource?: string; readonly value: string },
  ): Promise<void> => {
    const reply = await link.request({ kind: "manager", verb: "set", object, name, attrs: [{ ...attribute, op: "=" }] });
    if (!reply.ok) throw new AdminError(`reset: ${object} ${name}: ${reply.text ?? reply.code}`);
  };
  await set("server", "", { name: "job_history_enable", value: "True" });
  await set("node", conf.mom_node_name, { name: "resources_available", resource: "ncpus", value: NODE_CPUS });
  link.close();
}

/**
 * Removes what killed jobs have left outside of PBS_HOME. Job numbers start again, so a TMPDIR left by a job would be in the way of another user's job with the
 * same number. In user mode all files are in PBS_HOME.
 */
function clearAwayRuns(conf: Conf): void {
  const records = join(conf.mom_home, "mom_priv/jobs/records");
  if (conf.mode !== "system" || !existsSync(records)) return;
  for (const { plan } of readRecords(readFileSync(records, "utf8")).values()) finishJob({ plan, output: "drop", success: false });
}
