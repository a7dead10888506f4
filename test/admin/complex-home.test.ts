import assert from "node:assert/strict";
import { chmodSync, chownSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { complexConf, complexDirectory, homeFaults, makeConfFile, makeHome, programTree } from "#admin/complex/complex-home.ts";
import { fromTemplate } from "#admin/installation/install.ts";

function inDirectory(work: (dir: string) => void): void {
  const dir = mkdtempSync(join(tmpdir(), "partita-home-"));
  try {
    work(dir);
  } finally {
    rmSync(dir, { recursive: true });
  }
}
const conf = (dir: string, more: object = {}) => ({
  file: join(dir, "pbs.conf"),
  home: join(dir, "pbs"),
  exec: "/opt/pbs",
  mode: "user" as const,
  server: undefined,
  ...more,
});

test("complex: which one a call means", () => {
  inDirectory((dir) => {
    makeConfFile(conf(dir));
    makeConfFile(conf(join(dir, "state/partita")));
    const rows: [home: string | undefined, env: { [name: string]: string }, file: string][] = [
      [dir, { PARTITA_HOME: "/elsewhere", PBS_CONF_FILE: "/elsewhere" }, join(dir, "pbs.conf")],
      [undefined, { PARTITA_HOME: dir, PBS_CONF_FILE: "/elsewhere" }, join(dir, "pbs.conf")],
      [undefined, { PBS_CONF_FILE: join(dir, "pbs.conf"), XDG_STATE_HOME: "/elsewhere" }, join(dir, "pbs.conf")],
      [undefined, { XDG_STATE_HOME: join(dir, "state") }, join(dir, "state/partita/pbs.conf")],
    ];
    for (const [home, env, file] of rows) assert.equal(complexConf(home, env).file, file);
    assert.throws(() => complexConf(join(dir, "none"), {}), /there is no complex in .*none; make one with: partita init --home/);
    assert.equal(complexDirectory(undefined, { XDG_STATE_HOME: "/s" }), "/s/partita");
  });
});

test("complex: pbs.conf is written once, with a server name that can be one", () => {
  inDirectory((dir) => {
    for (const server of ["", "-x", "a b", "a:1", "x".repeat(64), "a\nPBS_EXEC=/evil"])
      assert.throws(() => makeConfFile(conf(dir, { server })), /cannot be a server's name/);
    for (const home of ["/a\nb", "/a'b", "/a "]) assert.throws(() => makeConfFile(conf(dir, { home })), /cannot stand in pbs\.conf/);
    makeConfFile(conf(dir, { server: "svr-1.example.org", mode: "system" }));
    assert.throws(() => makeConfFile(conf(dir)), /holds a complex already/);
    const read = complexConf(dir, { PBS_HOME: "/not/overridden" });
    assert.deepEqual(
      [read.server, read.mode, read.home, read.start],
      // In system mode the mode is that of the owner of PBS_HOME.
      [
        "svr-1.example.org",
        process.geteuid?.() === 0 ? "system" : "user",
        join(dir, "pbs"),
        { server: true, sched: true, mom: true, comm: true },
      ],
    );
  });
});

test("complex: PBS_HOME has the modes of the contract; what exists is kept; what is wrong is named", () => {
  inDirectory((dir) => {
    const home = join(dir, "pbs");
    const make = (): void => makeHome({ home, mode: "system", exec: "/opt/pbs", file: "/etc/pbs.conf" }, join(programTree(), "etc"));
    make();
    const own = process.getuid?.() ?? 0;
    assert.deepEqual(homeFaults(home, "system", own), []);
    assert.deepEqual(
      ["server_priv", "mom_priv", "spool", "checkpoint"].map((name) => statSync(join(home, name)).mode & 0o7777),
      [0o750, 0o751, 0o1777, 0o700],
    );
    writeFileSync(join(home, "sched_priv/sched_config"), "mine");
    rmSync(join(home, "aux"), { recursive: true });
    chmodSync(join(home, "server_priv"), 0o777);
    chmodSync(join(home, "server_logs"), 0o700);
    const faults = homeFaults(home, "system", own);
    assert.equal(faults.length, 2);
    assert.match(faults.join("\n"), /server_priv has mode 777, should be 750\n.*aux is missing/s);
    make();
    assert.equal(readFileSync(join(home, "sched_priv/sched_config"), "utf8"), "mine");
    assert.match(homeFaults(home, "system", own).join(), /^[^,]*server_priv has mode 777[^,]*, should be 750$/);
    assert.match(homeFaults(home, "system", own + 1)[0] ?? "", /belongs to uid/);
  });
});

test("templates: every place is filled, and the init script is a shell script", () => {
  for (const name of ["pbs_init.d.in", "pbs_habitat.in", "pbs.service.in"]) {
    const text = fromTemplate(name, "/opt/pbs", "/etc/pbs.conf").toString();
    assert.doesNotMatch(text, /@[A-Z]+@/, name);
    assert.match(text, /\/opt\/pbs|\/etc\/pbs\.conf/, name);
  }
});

test("complex: files of sched_priv belong to whoever makes the complex, not to the owner of the checkout", {
  skip: process.getuid?.() === 0 ? false : "only root can give a checkout to another user",
}, () => {
  inDirectory((dir) => {
    const home = join(dir, "pbs");
    const defaults = join(dir, "etc");
    cpSync(join(programTree(), "etc"), defaults, { recursive: true });
    for (const name of readdirSync(defaults)) chownSync(join(defaults, name), 12345, 12345);
    makeHome({ home, mode: "system", exec: "/opt/pbs", file: "/etc/pbs.conf" }, defaults);
    const files = readdirSync(join(home, "sched_priv"));
    assert.equal(files.length, 4);
    assert.deepEqual(
      files.map((name) => statSync(join(home, "sched_priv", name)).uid),
      [0, 0, 0, 0],
    );
  });
});
