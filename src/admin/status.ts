// `partita status`: what runs, as text or JSON.

import type { Conf } from "#support/conf.ts";
import { askServer, DAEMONS, daemonPid, enabledDaemons } from "./daemons.ts";

export type Report = {
  readonly text: string /** 0: everything that should run does, and the server answers; else 1 */;
  readonly status: number;
};

export async function reportStatus(conf: Conf, json: boolean): Promise<Report> {
  const seen = await askServer(conf);
  const daemons = Object.fromEntries(DAEMONS.map((name) => [`pbs_${name}`, daemonPid(conf, name)]));
  const scheds = (seen?.scheds ?? []).flatMap((item) =>
    "attrs" in item
      ? [{ name: item.id, state: item.attrs["state"], partition: item.attrs["partition"] ?? null, comment: item.attrs["comment"] ?? null }]
      : [],
  );
  const nodes = (seen?.nodes ?? []).flatMap((item) => ("attrs" in item ? [{ name: item.id, state: item.attrs["state"] }] : []));
  const down = enabledDaemons(conf).filter((name) => daemons[`pbs_${name}`] === null);
  const status = seen === null || down.length > 0 ? 1 : 0;
  if (json) {
    const report = { conf: conf.file, mode: conf.mode, answers: seen !== null, daemons, scheds, nodes };
    return { text: JSON.stringify(report, null, 2), status };
  }
  const lines = [`${conf.file}, ${conf.mode} mode: the server ${seen === null ? "does not answer" : "answers"}`];
  for (const [name, pid] of Object.entries(daemons)) {
    const enabled = enabledDaemons(conf).some((daemon) => name === `pbs_${daemon}`);
    lines.push(`  ${name.padEnd(11)} ${pid === null ? (enabled ? "not running" : "not running (not enabled)") : `pid ${pid}`}`);
  }
  for (const { name, state, partition, comment } of scheds) {
    lines.push(`  scheduler ${name}: ${[state, partition, comment].filter((part) => part !== null).join(", ")}`);
  }
  for (const { name, state } of nodes) lines.push(`  vnode ${name}: ${state}`);
  return { text: lines.join("\n"), status };
}
