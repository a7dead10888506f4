// `npm run deb [-- DIRECTORY [VERSION]]`: builds the Debian package of this checkout with dpkg-deb (docs/packages.md). Needs root or fakeroot, because the files
// in the package belong to root.
//
// D1. The files in PBS_EXEC are those that `partita init --system` installs: it makes them in a directory, and paths of that directory in texts are replaced.
// D2. Configuration and state (/etc/pbs.conf, PBS_HOME) are not in the package: the maintainer scripts make them, and only a purge removes them.

import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { buildAll, mustHaveBuilt } from "../lib/bundle.mjs";
import { ROOT } from "../lib/paths.mjs";
import { Problem, say } from "../lib/run.mjs";

const EXEC = "/opt/pbs";
const CONF = "/etc/pbs.conf";
const HERE = join(ROOT, "scripts/deb");

/** Builds the package. Returns its path. */
export async function buildPackage(to = join(ROOT, "dist"), version = manifest().version) {
  if (process.geteuid() !== 0) throw new Problem("the files of the package must belong to root: call it as root, or with fakeroot");
  if (spawnSync("dpkg-deb", ["--version"]).status !== 0) throw new Problem("dpkg-deb is missing: packages are built on Debian and its kin");
  mustHaveBuilt(await buildAll());
  process.umask(0o022);
  const scratch = mkdtempSync(join(tmpdir(), "partita-deb-"));
  try {
    const root = join(scratch, "root");
    const architecture = run("dpkg", ["--print-architecture"]).trim();
    mkdirSync(root, { mode: 0o755 });
    stagePrograms(root, join(scratch, "complex"));
    stageSystem(root);
    stageControl(root, version, architecture);
    mkdirSync(to, { recursive: true });
    const file = join(to, `partita_${version}_${architecture}.deb`);
    // The largest file is the runtime. A higher level of compression takes minutes and saves little.
    run("dpkg-deb", ["-Zxz", "-z1", "--root-owner-group", "--build", root, file]);
    return file;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

const manifest = () => JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));

/** PBS_EXEC, as init makes it. */
function stagePrograms(root, complex) {
  run(join(ROOT, "bin/partita"), ["init", "--system", "--home", complex, "--prefix", join(root, EXEC)]);
  const made = ["libexec", "sbin"].flatMap((folder) => readdirSync(join(root, EXEC, folder)).map((name) => join(root, EXEC, folder, name)));
  for (const path of made) {
    const text = readFileSync(path, "latin1");
    if (!text.includes(root) && !text.includes(complex)) continue;
    writeFileSync(path, text.replaceAll(join(complex, "pbs.conf"), CONF).replaceAll(root, ""), "latin1");
  }
}

/** What is outside PBS_EXEC: the unit, login files, init script, completions, and the removal of old logs. */
function stageSystem(root) {
  const templates = [
    ["pbs.service.in", "lib/systemd/system/pbs.service", 0o644],
    ["pbs_init.d.in", "etc/init.d/pbs", 0o755],
    ["pbs.sh.in", "etc/profile.d/pbs.sh", 0o644],
    ["pbs.csh.in", "etc/profile.d/pbs.csh", 0o644],
  ];
  for (const [name, path, mode] of templates) {
    const text = readFileSync(join(ROOT, "etc", name), "utf8")
      .replaceAll("@EXEC@", EXEC)
      .replaceAll("@CONF@", CONF);
    write(join(root, path), text, mode);
  }
  write(join(root, "etc/logrotate.d/partita"), readFileSync(join(HERE, "logrotate"), "utf8"));
  const completion = `${EXEC}/share/completion`;
  write(join(root, "etc/bash_completion.d/partita"), `[ -r ${completion}/partita.bash ] && . ${completion}/partita.bash\n`);
  link(`${completion}/_partita`, join(root, "usr/share/zsh/vendor-completions/_partita"));
  link(`${completion}/partita.fish`, join(root, "usr/share/fish/vendor_conf.d/partita.fish"));
  write(join(root, "usr/share/doc/partita/copyright"), readFileSync(join(ROOT, "LICENSE"), "utf8"));
}

const CONFFILES = [
  "/etc/init.d/pbs",
  "/etc/profile.d/pbs.sh",
  "/etc/profile.d/pbs.csh",
  "/etc/logrotate.d/partita",
  "/etc/bash_completion.d/partita",
];

function stageControl(root, version, architecture) {
  const control = join(root, "DEBIAN");
  const size_kb = run("du", ["-sk", "--exclude=DEBIAN", root]).split("\t")[0];
  const fields = {
    Package: "partita",
    Version: version,
    Architecture: architecture,
    Maintainer: "Partita <partita@localhost>",
    "Installed-Size": size_kb,
    Depends: "libc6, libstdc++6",
    Recommends: "python3, logrotate",
    // They have the same programs, configuration and PBS_HOME.
    Conflicts: "openpbs, openpbs-server, openpbs-execution, openpbs-client, pbspro",
    Section: "admin",
    Priority: "optional",
    Description: `${manifest().description}\n Server, schedulers and moms of a PBS-style batch system, with the PBS commands.`,
  };
  const text = Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`);
  write(join(control, "control"), text.join(""));
  write(join(control, "conffiles"), `${CONFFILES.join("\n")}\n`);
  for (const name of ["postinst", "prerm", "postrm"]) {
    cpSync(join(HERE, name), join(control, name));
    chmodSync(join(control, name), 0o755);
  }
}

function write(path, text, mode = 0o644) {
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  writeFileSync(path, text);
  chmodSync(path, mode);
}

function link(target, path) {
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  symlinkSync(target, path);
}

function run(program, args) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: "utf8" });
  if (status !== 0) throw new Problem(`${program} ${args[0]}: ${error?.message ?? stderr}`);
  return stdout;
}

if (import.meta.url === `file://${process.argv[1]}`) {
  const [to, version] = process.argv.slice(2);
  try {
    const file = await buildPackage(to === undefined ? undefined : resolve(to), version);
    process.stdout.write(`${file}\n`);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    say(error.message);
    process.exitCode = 1;
  }
}
