// Writes bin/: one launcher per program, all from the template below. `node scripts/launchers.mjs` after a change of scripts/lib/programs.mjs or
// of the template; a tidy test compares.
//
// A launcher costs a shell's start (about 1 ms): no other program is run on its way, but for readlink when it is reached through a symbolic link, and find
// where a daemon of a checkout is started (5 ms; the same question asked by a Node costs 60).
// It works in two layouts, which are the same below BASE:
//     checkout:   BIN = BASE/bin                     BASE/node_modules/node/bin/node   BASE/dist/NAME.cjs   BASE/node_modules/sqlite3 ...
//     installed:  BIN = PBS_EXEC/bin or sbin,        BASE = PBS_EXEC/lib/partita, with the same folders below
// Where BASE/dist/pbs_launcher was built (native/, scripts/lib/native.mjs), the launcher of a command hands over to that, which finds a resident process for
// the command or starts Node as below.
// Only a checkout has BASE/scripts: there the launcher of a daemon refreshes stale bundles first, and so does `partita` before it starts daemons.
// pbs_server without arguments goes into the background here, as shell/daemon-start.ts has it: a Node that only waits would cost as much as the start of one.

import { chmodSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./lib/paths.mjs";
import { bundleName, PROGRAMS } from "./lib/programs.mjs";

/** Text of every launcher by name. */
export function launchers() {
  const programs = PROGRAMS.filter((program) => program.kind !== "helper");
  return new Map(programs.map((program) => [program.name, launcher(program)]));
}

function launcher(program) {
  return `#!/bin/sh
# Starts ${program.name} in the pinned Node. Written by scripts/launchers.mjs, which explains the layout.
self=$0
[ -L "$self" ] && self=$(readlink -f -- "$self")
case $self in */*) base=\${self%/*}/.. ;; *) base=.. ;; esac
[ -d "$base/lib/partita" ] && base=$base/lib/partita
node=$base/node_modules/node/bin/node
${REFRESH[program.kind](program)}${program.name === "pbs_server" ? BACKGROUND : ""}exec "$node" ${FLAGS[program.kind]}"$base/dist/${bundleName(program)}" "$@"
`;
}

/** Warnings of Node itself on stderr would break what programs read from our commands. */
const FLAGS = { command: "--no-warnings ", admin: "--no-warnings ", daemon: "" };

const REFRESH = {
  command: (program) => `[ -x "$base/dist/pbs_launcher" ] && exec "$base/dist/pbs_launcher" ${program.name} "$@"
if [ ! -x "$node" ] || [ ! -f "$base/dist/${bundleName(program)}" ]; then
  echo "${program.name}: not installed yet: run 'npm run build' in $base" >&2
  exit 127
fi
`,
  daemon: (program) => `if [ -f "$base/scripts/refresh.mjs" ]; then
  ${ifStale(program)}
fi
`,
  admin: (program) => `if [ -f "$base/scripts/refresh.mjs" ]; then
  stale=
  case $1 in
    init | start | upgrade | demo | grid | shell | top | bench) stale=maybe ;;
    *) [ -x "$node" ] && [ -f "$base/dist/${bundleName(program)}" ] || stale=yes ;;
  esac
  if [ -n "$stale" ]; then
    ${ifStale(program).replaceAll("\n", "\n  ")}
  fi
fi
`,
};

/** What a bundle is made from may lie in these; a file that vanished leaves a younger directory behind. dist/bundles.json is as old as the last build's begin. */
const SOURCES = ["src", "native", "scripts/lib", "package.json", "package-lock.json"].map((path) => `"$base/${path}"`).join(" ");

/** If everything exists and no source is newer, the Node that checks closely and builds is not started. */
function ifStale(program) {
  return `if [ -x "$node" ] && [ -f "$base/dist/${bundleName(program)}" ] && [ -f "$base/node_modules/.partita.json" ] &&
    [ -z "$(find ${SOURCES} -newer "$base/dist/bundles.json" -print -quit 2>&1)" ]; then :
  elif [ -x "$node" ]; then "$node" "$base/scripts/refresh.mjs" ${program.name} || exit 1
  else node "$base/scripts/refresh.mjs" ${program.name} </dev/null || exit 1; fi`;
}

/**
 * Waits for the server's word on descriptor 3: \`ready\`, or why it does not answer. Nothing but the server may hold the pipe: of a list in the background
 * (\`cd / && setsid ... &\`) bash keeps a shell, with the pipe, until the server ends.
 */
const BACKGROUND = `if [ $# -eq 0 ] && [ -z "$PARTITA_READY_FD" ] && command -v setsid >/dev/null; then
  case $base in /*) ;; *) base=$PWD/$base ;; esac
  case $node in /*) ;; *) node=$PWD/$node ;; esac
  said=$(cd /; PARTITA_READY_FD=3 setsid "$node" "$base/dist/pbs_server.mjs" 3>&1 >/dev/null 2>&1 </dev/null &)
  case $said in
    ready*) exit 0 ;;
    "") said="pbs_server: ended before it answered; see the server's log" ;;
  esac
  printf '%s\\n' "$said" >&2
  exit 1
fi
`;

/** Writes all files of bin/ and removes launchers of programs that no longer exist. */
export function writeLaunchers() {
  const bin = join(ROOT, "bin");
  const all = launchers();
  mkdirSync(bin, { recursive: true });
  for (const name of readdirSync(bin)) if (!all.has(name)) rmSync(join(bin, name));
  for (const [name, text] of all) {
    writeFileSync(join(bin, name), text);
    chmodSync(join(bin, name), 0o755);
  }
  return all.size;
}

if (import.meta.url === `file://${process.argv[1]}`) process.stdout.write(`${writeLaunchers()} launchers\n`);
