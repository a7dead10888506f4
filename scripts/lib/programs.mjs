// The programs, their source files, and the names of their bundles in dist/. Bundles, launchers and installation all use this
// list.

/**
 * Programs with a launcher in bin/. `source` is the entry under src/; those of commands are at src/cli/commands/TASK/NAME.ts, those of reservations at src/rsub/NAME.ts.
 * kind: command (never refreshes its bundle), daemon (its launcher refreshes stale bundles in a checkout), helper (started by another program, no launcher).
 */
export const PROGRAMS = [
  ...[
    ["pbs_server", "src/server/main.ts"],
    ["pbs_sched", "src/sched/main.ts"],
    ["pbs_mom", "src/mom/main.ts"],
    ["pbs_comm", "src/comm/main.ts"],
  ].map(([name, source]) => ({ name, source, kind: "daemon" })),
  ...[
    ["pbs_starter", "src/mom/starter/starter-main.ts"],
    ["pbs_file_server", "src/mom/files/file-server-main.ts"],
    ["pbs_file_worker", "src/mom/files/file-worker-main.ts"],
    ["pbs_file_agent", "src/mom/agent/file-agent-main.ts"],
    ["pbs_terminal", "src/mom/terminal/terminal-main.ts"],
    ["pbs_sched_watch", "src/sched/shell/module-watch-main.ts"],
    ["pbs_hook_host", "src/hooks/javascript/host-main.ts"],
    ["pbs_resident", "src/resident/main.ts"],
    ["pbs_runners", "src/runner/main.ts"],
    ["pbs_runner", "src/runner/pilot-main.ts"],
    ["pbs_grid", "src/grid/main.ts"],
    ["pbs_web", "src/web/main.ts"],
  ].map(([name, source]) => ({ name, source, kind: "helper" })),
  { name: "qmgr", source: "src/qmgr/main.ts", kind: "command" },
  { name: "partita", source: "src/admin/main.ts", kind: "admin" },
  ...Object.entries({
    jobs: "qsub qdel qalter qhold qrls qmove qorder qmsg qsig qrerun qrun qselect pbs_release_nodes",
    queues: "qstart qstop qenable qdisable",
    nodes: "pbsnodes pbs_hostn",
    status: "qstat tracejob printjob pbsfs",
    complex: "qterm pbs_dataservice",
    tasks: "pbsdsh pbs_tmrsh pbs_attach",
    grid: "gridsub gridstat griddel gridhold gridrls gridevents gridclusters gridnotify",
  }).flatMap(([task, names]) => names.split(" ").map((name) => ({ name, source: `src/cli/commands/${task}/${name}.ts`, kind: "command" }))),
  ..."pbs_rsub pbs_rstat pbs_rdel pbs_ralter".split(" ").map((name) => ({ name, source: `src/rsub/${name}.ts`, kind: "command" })),
  // The short name that the multi-scheduler design uses.
  { name: "rsub", source: "src/rsub/pbs_rsub.ts", kind: "command" },
];

/** Packages with native code, including the packages that they load. They are not bundled but loaded from node_modules. */
export const NATIVE_PACKAGES = ["sqlite3", "koffi"];

/**
 * What an installed copy needs, as paths that are the same below a checkout and below PBS_EXEC/lib/partita (folders with all their contents),
 * and which launchers of bin/ go where in PBS_EXEC. Bundles are all *.cjs and *.mjs of dist/.
 */
export function installation() {
  const platform = `${process.platform}-${process.arch}`;
  const modules = [
    "node/bin/node",
    ...["package.json", "LICENSE", "lib", "build/Release/node_sqlite3.node"].map((path) => `sqlite3/${path}`),
    "bindings",
    "file-uri-to-path",
    ...["package.json", "LICENSE.txt", "index.cjs", "index.js", "indirect.cjs", "indirect.js", "src"].map((path) => `koffi/${path}`),
    `@koromix/koffi-${platform}`,
  ];
  const named = (...kinds) => PROGRAMS.filter(({ kind }) => kinds.includes(kind)).map(({ name }) => name);
  return {
    files: ["dist", "src/hooks/python", ...modules.map((path) => `node_modules/${path}`)],
    bin: named("command", "admin"),
    // Tools of sites look for pbsfs in sbin; users call it from bin.
    sbin: [...named("daemon"), "pbsfs"],
    commands: named("command"),
  };
}

/** Commands are CommonJS, which starts 1-2 ms faster; the others are ES modules, which may await at top level. */
export function bundleName(program) {
  return `${program.name}.${program.kind === "command" ? "cjs" : "mjs"}`;
}
