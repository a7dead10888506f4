// The commands as the resident loads them: each when it is asked for first.

import type { Command } from "#cli/command.ts";

type Module = { readonly run: Command };

/** By name; those that src/resident/allowance.ts never takes are missing. */
export const COMMANDS: Readonly<Record<string, () => Promise<Module>>> = {
  qsub: () => import("#cli/commands/qsub.ts"),
  qmgr: () => import("#qmgr/main.ts"),
  qstat: () => import("#cli/commands/qstat.ts"),
  qdel: () => import("#cli/commands/qdel.ts"),
  qalter: () => import("#cli/commands/qalter.ts"),
  qhold: () => import("#cli/commands/qhold.ts"),
  qrls: () => import("#cli/commands/qrls.ts"),
  qmove: () => import("#cli/commands/qmove.ts"),
  qorder: () => import("#cli/commands/qorder.ts"),
  qmsg: () => import("#cli/commands/qmsg.ts"),
  qsig: () => import("#cli/commands/qsig.ts"),
  qrerun: () => import("#cli/commands/qrerun.ts"),
  qrun: () => import("#cli/commands/qrun.ts"),
  qselect: () => import("#cli/commands/qselect.ts"),
  qstart: () => import("#cli/commands/qstart.ts"),
  qstop: () => import("#cli/commands/qstop.ts"),
  qenable: () => import("#cli/commands/qenable.ts"),
  qdisable: () => import("#cli/commands/qdisable.ts"),
  qterm: () => import("#cli/commands/qterm.ts"),
  pbsnodes: () => import("#cli/commands/pbsnodes.ts"),
  pbs_release_nodes: () => import("#cli/commands/pbs_release_nodes.ts"),
  printjob: () => import("#cli/commands/printjob.ts"),
  pbs_rsub: () => import("#rsub/pbs_rsub.ts"),
  rsub: () => import("#rsub/pbs_rsub.ts"),
  pbs_rstat: () => import("#rsub/pbs_rstat.ts"),
  pbs_rdel: () => import("#rsub/pbs_rdel.ts"),
  pbs_ralter: () => import("#rsub/pbs_ralter.ts"),
};

/** Rejects for a name that is none of them. */
export async function loadCommand(program: string): Promise<Command> {
  const load = Object.hasOwn(COMMANDS, program) ? COMMANDS[program] : undefined;
  if (load === undefined) throw new Error(`the resident has no ${program}`);
  return (await load()).run;
}
