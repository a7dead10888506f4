// A mom whose server is the test: a separate PBS_HOME, a socket in the place of the server's, and the messages of the mom in
// order.

import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { MomJob, MomToServer, ServerToMom } from "#protocol/mom-link.ts";
import { frameTypes, parseFrame } from "#protocol/schema-link.ts";
import { type LinkServer, listenLinks, type ServerLink } from "#protocol/wire/ipc-transport.ts";
import { serverSocketPath } from "#protocol/wire/socket-path.ts";
import { ROOT } from "./shared.ts";

export const HOST = hostname().split(".")[0] as string;

export type Said = { [T in keyof MomToServer]: { readonly type: T; readonly data: MomToServer[T] } }[keyof MomToServer];
export type Obit = MomToServer["mom-obit"];

export type Bed = {
  readonly mode: "user" | "system";
  /** PBS_HOME */
  readonly home: string;
  /** a directory that every user may write to */
  readonly work: string;
  readonly said: Said[];
  send<T extends keyof ServerToMom>(type: T, data: ServerToMom[T]): void;
  /** a job of `user` that runs a program or a script; overrides replace attributes */
  job(
    what: { readonly argv: readonly string[] } | { readonly script: string },
    overrides?: Partial<Omit<MomJob, "attrs">> & { readonly attrs?: MomJob["attrs"] },
  ): MomJob;
  start(...jobs: readonly MomJob[]): void;
  /** the obit of the run; acknowledged unless acknowledge is false */
  obit(job: MomJob, options?: { readonly acknowledge?: boolean }): Promise<Obit>;
  started(job: MomJob): Promise<MomToServer["mom-started"]>;
  /** asks until the condition holds; what: named in the error if it never holds */
  until<T>(what: string, ask: () => T | undefined | false): Promise<T>;
  launch(...args: readonly string[]): Promise<void>;
  /** the mom's pid */
  readonly pid: number;
  readonly starter_pid: number;
  /** ends the mom with the signal and waits for its end */
  end(signal: NodeJS.Signals): Promise<void>;
  log(): string;
  close(): Promise<void>;
};

const LIMIT_MS = 120_000;

export async function makeBed(
  options: { readonly mode?: "user" | "system"; readonly config?: string; readonly user?: string } = {},
): Promise<Bed> {
  const mode = options.mode ?? "user";
  const top = mkdtempSync(join(tmpdir(), "partita-mom-"));
  const home = join(top, "pbs");
  const work = join(top, "work");
  const tmp = join(top, "tmp");
  chmodSync(top, 0o755);
  for (const [path, bits] of [
    [home, 0o755],
    [work, 0o777],
    [tmp, 0o1777],
  ] as const) {
    mkdirSync(path);
    chmodSync(path, bits);
  }
  mkdirSync(join(home, "mom_priv"));
  chmodSync(join(home, "mom_priv"), 0o751);
  if (options.config !== undefined) writeFileSync(join(home, "mom_priv", "config"), options.config);
  writeFileSync(join(home, "pbs_environment"), "PATH=/usr/bin:/bin\n");
  writeFileSync(
    join(top, "pbs.conf"),
    `PBS_EXEC=${ROOT}\nPBS_HOME=${home}\nPBS_SERVER=${HOST}\nPBS_SCP=/bin/false\nPARTITA_MODE=${mode}\nPBS_TMPDIR=${tmp}\n`,
  );

  const said: Said[] = [];
  let link: ServerLink | null = null;
  const server: LinkServer = await listenLinks({
    path: serverSocketPath(home),
    types: frameTypes("mom-to-server"),
    everyone: false,
    onFrame(from, type, data) {
      const parsed = parseFrame("mom-to-server", type, data);
      if (!parsed.ok) throw new Error(`the mom sent what is not a message: ${parsed.text}`);
      const { frame } = parsed;
      if (frame.type === "mom-hello") {
        link = from;
        from.welcome();
        from.send("mom-welcome", {
          keep: frame.data.jobs.map((each) => each.job),
          kill: [],
          acknowledged: [],
        } satisfies ServerToMom["mom-welcome"]);
      }
      said.push(frame);
    },
    onClose(from) {
      if (link === from) link = null;
    },
  });

  let child: ChildProcess | null = null;
  let sequence = 0;
  const user = options.user ?? userInfo().username;

  const until: Bed["until"] = async (what, ask) => {
    const deadline_ms = performance.now() + LIMIT_MS;
    for (;;) {
      const seen = ask();
      if (seen !== undefined && seen !== false) return seen as never;
      if (performance.now() > deadline_ms) throw new Error(`never: ${what}\n${bed.log().split("\n").slice(-30).join("\n")}`);
      await sleep(10);
    }
  };
  const find = <T extends keyof MomToServer>(type: T, job: MomJob) =>
    said.find(
      (each) =>
        each.type === type &&
        (each.data as { job?: string }).job === job.id &&
        (each.data as { run_count?: number }).run_count === job.run_count,
    )?.data as MomToServer[T] | undefined;

  const bed: Bed = {
    mode,
    home,
    work,
    said,
    until,
    send(type, data) {
      if (link === null) throw new Error("no mom is connected");
      link.send(type, data);
    },
    job(what, overrides = {}) {
      const { attrs, ...rest } = overrides;
      const id = overrides.id ?? `${++sequence}.${HOST}`;
      const program =
        "argv" in what
          ? { executable: element("Executable", what.argv.slice(0, 1)), argument_list: element("Argument", what.argv.slice(1)) }
          : {};
      return {
        id,
        run_count: 1,
        user,
        group: "",
        queue: "workq",
        exec_host: `${HOST}/0`,
        exec_vnode: `(${HOST}:ncpus=1)`,
        script: "script" in what ? what.script : null,
        kill_delay_s: 10,
        cookie: `cookie-${id}`,
        ...rest,
        attrs: {
          Job_Name: "job",
          Join_Path: "n",
          Keep_Files: "n",
          Rerunable: true,
          schedselect: "1:ncpus=1",
          Resource_List: { ncpus: 1 },
          Variable_List: [],
          Output_Path: `${HOST}:${work}/${id}.out`,
          Error_Path: `${HOST}:${work}/${id}.err`,
          ...program,
          ...attrs,
        },
      };
    },
    start: (...jobs) => bed.send("mom-start", { jobs }),
    async obit(job, { acknowledge = true } = {}) {
      const obit = await until(`obit of ${job.id}`, () => find("mom-obit", job));
      if (acknowledge) bed.send("mom-obit-ack", { jobs: [{ job: job.id, run_count: job.run_count }] });
      return obit;
    },
    started: (job) => until(`start of ${job.id}`, () => find("mom-started", job)),
    async launch(...args) {
      const before = said.filter((each) => each.type === "mom-hello").length;
      child = spawn(process.execPath, [join(ROOT, "src/mom/main.ts"), "-N", ...args], {
        stdio: ["ignore", "inherit", "inherit"],
        cwd: "/",
        env: { ...process.env, PBS_CONF_FILE: join(top, "pbs.conf") },
      });
      await until("hello", () => said.filter((each) => each.type === "mom-hello").length > before);
    },
    get pid() {
      return child?.pid ?? 0;
    },
    get starter_pid() {
      return Number(readFileSync(join(home, "mom_priv", "starter.lock"), "utf8"));
    },
    async end(signal) {
      const ending = child;
      child = null;
      if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return;
      const gone = new Promise((resolve) => ending.once("exit", resolve));
      ending.kill(signal);
      await gone;
    },
    log() {
      try {
        const day = new Date();
        const name = `${day.getFullYear()}${String(day.getMonth() + 1).padStart(2, "0")}${String(day.getDate()).padStart(2, "0")}`;
        return readFileSync(join(home, "mom_logs", name), "utf8");
      } catch {
        return "";
      }
    },
    async close() {
      await bed.end("SIGTERM");
      try {
        process.kill(bed.starter_pid, "SIGKILL");
      } catch {
        // It ended with its mom.
      }
      await server.close();
      rmSync(top, { recursive: true, force: true, maxRetries: 5 });
    },
  };
  return bed;
}

const element = (name: string, texts: readonly string[]): string =>
  texts
    .map(
      (text) => `<jsdl-hpcpa:${name}>${text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")}</jsdl-hpcpa:${name}>`,
    )
    .join("");
