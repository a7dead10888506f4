// Hands mails to the mail program of the server (attribute mailer): as the server's user, without a shell, with nothing of the server's environment.
//
// M1. A program that is missing, fails or hangs costs a log line; the server waits for none.
// M2. At most RUNNING_MAX are at work, the others wait their turn; what is more than WAITING_MAX is dropped with a word to the log.

import { type ChildProcess, spawn } from "node:child_process";
import type { Mail } from "../mail.ts";

const RUNNING_MAX = 16;
const WAITING_MAX = 10_000;
/** A mail program that takes longer is killed. */
const SENDING_MS_MAX = 120_000;

export type Mailer = { send(mail: Mail): void };

/** domain: of recipients without one, and of owners (PBS_MAIL_HOST_NAME); undefined: none. */
export function mailer(domain: string | undefined, problem: (text: string) => void): Mailer {
  const waiting: Mail[] = [];
  /** programs that were missing: told once */
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
    const to = addressesOf(mail, domain);
    const child: ChildProcess = spawn(mail.mailer, ["-f", mail.from, "--", ...to], {
      stdio: ["pipe", "ignore", "ignore"],
      cwd: "/",
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
    });
    const timer = setTimeout(() => child.kill("SIGKILL"), SENDING_MS_MAX);
    timer.unref();
    child.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") return end(error.message);
      const first = !missing.has(mail.mailer);
      missing.add(mail.mailer);
      end(first ? `there is no ${mail.mailer} (server attribute mailer); told once` : null);
    });
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

/** An owner is known by his host; where the site has a mail domain that is where he reads. */
export function addressesOf({ to, to_owner }: Pick<Mail, "to" | "to_owner">, domain: string | undefined): readonly string[] {
  if (domain === undefined) return to;
  return to.map((address) => {
    const name = to_owner ? address.replace(/@.*$/, "") : address;
    return name.includes("@") ? name : `${name}@${domain}`;
  });
}
