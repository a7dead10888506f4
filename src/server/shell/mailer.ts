// Passes mails to the mail program of the server (attribute mailer), without a shell and without the server's environment.
//
// M0. In system mode the program has an unprivileged identity (unprivileged.ts), and only root can change its file.
// M1. A program that is missing, fails or hangs causes a log line. The server never waits for a program.
// M2. At most RUNNING_MAX programs run, other mails wait. More than WAITING_MAX waiting mails are dropped with a log line.

import { type ChildProcess, spawn } from "node:child_process";
import { codeOf, messageOf } from "#support/caught.ts";
import { trustedFile } from "#support/trusted-file.ts";
import type { Mail } from "../engine/mail.ts";
import type { Unprivileged } from "./unprivileged.ts";

const RUNNING_MAX = 16;
const WAITING_MAX = 10_000;
/** A mail program that takes longer is killed. */
const SENDING_MS_MAX = 120_000;

export type Mailer = { send(mail: Mail): void };

export type MailerOptions = {
  /** domain for recipients without a domain, and for owners (PBS_MAIL_HOST_NAME); undefined: none */
  readonly domain: string | undefined;
  /** the identity of the program; null: the server's own (user mode); a text: the reason why there is no identity, so that no mail is sent */
  readonly identity: Unprivileged | string | null;
  readonly problem: (text: string) => void;
};

export function mailer({ domain, identity, problem }: MailerOptions): Mailer {
  const waiting: Mail[] = [];
  /** missing programs; each is reported once */
  const missing = new Set<string>();
  let running = 0;

  const next = (): void => {
    while (running < RUNNING_MAX && waiting.length > 0) start(waiting.shift() as Mail);
  };

  const start = (mail: Mail): void => {
    running++;
    let over = false;
    const end = (why: string | null): void => {
      if (over) return;
      over = true;
      clearTimeout(timer);
      running--;
      if (why !== null) problem(`mail "${mail.subject}" failed: ${why}`);
      next();
    };
    const failed = (error: unknown): void => {
      if (codeOf(error) !== "ENOENT") return end(messageOf(error));
      const first = !missing.has(mail.mailer);
      missing.add(mail.mailer);
      end(first ? `there is no ${mail.mailer} (server attribute mailer); told once` : null);
    };
    const to = addressesOf(mail, domain);
    let timer: NodeJS.Timeout | undefined;
    let child: ChildProcess;
    try {
      child = spawn(programOf(mail, identity), ["-f", mail.from, "--", ...to], {
        argv0: mail.mailer,
        stdio: ["pipe", "ignore", "ignore"],
        cwd: "/",
        env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
        // Node drops all supplementary groups when it is given an identity.
        ...(identity === null || typeof identity === "string" ? {} : identity),
      });
    } catch (error) {
      // The next mail is not begun within this call, because 10,000 nested calls would exhaust the stack.
      setImmediate(() => failed(error));
      return;
    }
    timer = setTimeout(() => child.kill("SIGKILL"), SENDING_MS_MAX).unref();
    child.once("error", failed);
    child.once("exit", (code, signal) => end(code === 0 ? null : `${mail.mailer} ended with ${code ?? signal}`));
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(`To: ${to.join(", ")}\nSubject: ${mail.subject}\n\n${mail.body}`);
  };

  return {
    send(mail) {
      if (mail.to.length === 0) return;
      if (waiting.length >= WAITING_MAX) return problem(`mail "${mail.subject}" dropped: ${waiting.length} are waiting to be sent`);
      waiting.push(mail);
      next();
    },
  };
}

/** The file that is run (M0). Throws with a text if no file may be run. */
function programOf({ mailer }: Mail, identity: MailerOptions["identity"]): string {
  if (typeof identity === "string") throw new Error(identity);
  return identity === null ? mailer : trustedFile(mailer, [0]);
}

/** An owner is known by the host; if the site has a mail domain, the owner reads mail there. */
export function addressesOf({ to, to_owner }: Pick<Mail, "to" | "to_owner">, domain: string | undefined): readonly string[] {
  if (domain === undefined) return to;
  return to.map((address) => {
    const name = to_owner ? address.replace(/@.*$/, "") : address;
    return name.includes("@") ? name : `${name}@${domain}`;
  });
}
