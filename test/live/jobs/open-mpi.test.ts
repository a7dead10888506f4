// Open MPI (Debian's openmpi-bin; scripts/test-host.sh) runs a program over two hosts of a job: pbs_tmrsh starts its daemons,
// and its processes communicate over TCP.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { startComplex } from "../complex.ts";
import { addHost } from "../hosts-bed.ts";
import { HOST } from "../mom-bed.ts";

const MPIEXEC = "/usr/bin/mpiexec.openmpi";
const BETA = "127.0.0.2";

/** The sum of all ranks + 1, by MPI_Allreduce. Python calls the library directly, so no compiler is needed. */
const PROGRAM = `import ctypes, os
mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
handle = lambda name: ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))
world = handle("ompi_mpi_comm_world")
mpi.MPI_Init(None, None)
rank, total = ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
own = ctypes.c_int(rank.value + 1)
mpi.MPI_Allreduce(ctypes.byref(own), ctypes.byref(total), 1, handle("ompi_mpi_int"), handle("ompi_mpi_op_sum"), world)
print("rank", rank.value, "of", total.value, "on node", os.environ["PBS_NODENUM"], flush=True)
mpi.MPI_Finalize()
`;

test("mpiexec of Open MPI over two hosts", {
  skip: existsSync(MPIEXEC) ? false : `${MPIEXEC} is not installed (scripts/test-host.sh installs it)`,
}, async () => {
  const complex = await startComplex();
  const beta = await addHost(complex, BETA);
  try {
    complex.qmgr(`set node ${HOST} resources_available.ncpus = 4`, "set server job_history_enable = true");
    const work = complex.work();
    writeFileSync(join(work, "sum.py"), PROGRAM);
    const settings = {
      OMPI_MCA_plm_rsh_agent: complex.command("pbs_tmrsh"),
      OMPI_MCA_plm_rsh_no_tree_spawn: "1",
      // Traffic stays on this machine.
      OMPI_MCA_oob_tcp_if_include: "lo",
      OMPI_MCA_btl: "tcp,self",
      OMPI_MCA_btl_tcp_if_include: "lo",
      OMPI_MCA_rmaps_base_oversubscribe: "1",
      OMPI_ALLOW_RUN_AS_ROOT: "1",
      OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: "1",
    };
    const exports = Object.entries(settings).map(([name, value]) => `export ${name}=${value}`);
    const script = join(work, "mpi.sh");
    const lines = ['cd "$PBS_O_WORKDIR"', ...exports, `${MPIEXEC} --hostfile $PBS_NODEFILE python3 sum.py`, "echo status $?"];
    writeFileSync(script, `${lines.join("\n")}\n`);
    const select = `select=1:ncpus=2:mpiprocs=2:host=${HOST}+1:ncpus=2:mpiprocs=2:host=${BETA}`;
    const id = complex.submit(["-l", select, "-l", "place=scatter", "-j", "oe", "-o", "mpi.out", script]);
    await complex.untilJob(id, "F");
    const out = readFileSync(join(work, "mpi.out"), "utf8");
    for (const [rank, node] of [0, 0, 1, 1].entries()) assert.ok(out.includes(`rank ${rank} of 10 on node ${node}\n`), out);
    assert.match(out, /^status 0$/m);
  } finally {
    await beta.close();
    await complex.stop();
  }
});
