// The commands that a resident can run. Each is loaded when it is first used.

import type { Command } from "#cli/command.ts";

type Module = { readonly run: Command };

/** The commands by name, without those that src/resident/allowance.ts never lets a resident run. */
export const COMMANDS: Readonly<Record<string, () => Promise<Module>>> = {
  qsub: () => import("#cli/commands/jobs/qsub.ts"),
  qmgr: () => import("#qmgr/main.ts"),
  qstat: () => import("#cli/commands/status/qstat.ts"),
  qdel: () => import("#cli/commands/jobs/qdel.ts"),
  qalter: () => import("#cli/commands/jobs/qalter.ts"),
  qhold: () => import("#cli/commands/jobs/qhold.ts"),
  qrls: () => import("#cli/commands/jobs/qrls.ts"),
  qmove: () => import("#cli/commands/jobs/qmove.ts"),
  qorder: () => import("#cli/commands/jobs/qorder.ts"),
  qmsg: () => import("#cli/commands/jobs/qmsg.ts"),
  qsig: () => import("#cli/commands/jobs/qsig.ts"),
  qrerun: () => import("#cli/commands/jobs/qrerun.ts"),
  qrun: () => import("#cli/commands/jobs/qrun.ts"),
  qselect: () => import("#cli/commands/jobs/qselect.ts"),
  qstart: () => import("#cli/commands/queues/qstart.ts"),
  qstop: () => import("#cli/commands/queues/qstop.ts"),
  qenable: () => import("#cli/commands/queues/qenable.ts"),
  qdisable: () => import("#cli/commands/queues/qdisable.ts"),
  qterm: () => import("#cli/commands/complex/qterm.ts"),
  pbsnodes: () => import("#cli/commands/nodes/pbsnodes.ts"),
  pbs_release_nodes: () => import("#cli/commands/jobs/pbs_release_nodes.ts"),
  gridstat: () => import("#cli/commands/grid/gridstat.ts"),
  griddel: () => import("#cli/commands/grid/griddel.ts"),
  gridhold: () => import("#cli/commands/grid/gridhold.ts"),
  gridrls: () => import("#cli/commands/grid/gridrls.ts"),
  gridevents: () => import("#cli/commands/grid/gridevents.ts"),
  gridclusters: () => import("#cli/commands/grid/gridclusters.ts"),
  gridnotify: () => import("#cli/commands/grid/gridnotify.ts"),
  printjob: () => import("#cli/commands/status/printjob.ts"),
  pbs_rsub: () => import("#rsub/pbs_rsub.ts"),
  rsub: () => import("#rsub/pbs_rsub.ts"),
  pbs_rstat: () => import("#rsub/pbs_rstat.ts"),
  pbs_rdel: () => import("#rsub/pbs_rdel.ts"),
  pbs_ralter: () => import("#rsub/pbs_ralter.ts"),
};

/** Loads a command. Rejects if the name is unknown. */
export async function loadCommand(program: string): Promise<Command> {
  const load = Object.hasOwn(COMMANDS, program) ? COMMANDS[program] : undefined;
  if (load === undefined) throw new Error(`the resident has no ${program}`);
  return (await load()).run;
}
