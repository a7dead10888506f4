// Sends mail with the program that the server's attribute mailer names. The program is started without a shell and without
// the server's environment.
//
// M0. In system mode the program runs as an unprivileged user (unprivileged.ts), and its file must be one that only root can
//     change.
// M1. If the program is missing, fails or hangs, this is logged. The server never waits for the program.
// M2. At most RUNNING_MAX mail programs run at the same time; other mails wait. If WAITING_MAX mails wait, further mails are
//     dropped, which is logged.

import { type ChildProcess, spawn } from "node:child_process";
import { present } from "#support/assert.ts";
import { codeOf, messageOf } from "#support/caught.ts";
import { trustedFile } from "#support/trusted-file.ts";
import type { Mail } from "../engine/mail.ts";
import type { Unprivileged } from "./unprivileged.ts";

const RUNNING_MAX = 16;
const WAITING_MAX = 10_000;
/** Time after which a mail program is killed. */
const SENDING_MS_MAX = 120_000;

export type Mailer = {
  /** Gives a mail to the program. done: called once, with the reason if the mail could not be sent, else with null */
  send(mail: Mail, done?: (why: string | null) => void): void;
};

export type MailerOptions = {
  /** the mail domain of recipients without a domain, and of owners (PBS_MAIL_HOST_NAME); undefined: there is none */
  readonly domain: string | undefined;
  /** the identity under which the program runs; null: the identity of the server (user mode). A text: the reason why there is none, so that no mail is sent */
  readonly identity: Unprivileged | string | null;
  /** where the program is named, for messages */
  readonly setting?: string;
  readonly problem: (text: string) => void;
};

export function mailer({ domain, identity, problem, setting: mailer_setting = "server attribute mailer" }: MailerOptions): Mailer {
  const waiting: { readonly mail: Mail; readonly done: (why: string | null) => void }[] = [];
  /** programs that were reported as missing; each is reported once */
  const missing = new Set<string>();
  let running = 0;

  const next = (): void => {
    while (running < RUNNING_MAX && waiting.length > 0) start(present(waiting.shift(), "waiting mail"));
  };

  const start = ({ mail, done }: (typeof waiting)[number]): void => {
    running++;
    let over = false;
    const end = (why: string | null, isTold = false): void => {
      if (over) return;
      over = true;
      clearTimeout(timer);
      running--;
      if (why !== null && !isTold) problem(`mail "${mail.subject}" failed: ${why}`);
      done(why);
      next();
    };
    const failed = (error: unknown): void => {
      if (codeOf(error) !== "ENOENT") return end(messageOf(error));
      const isTold = missing.has(mail.mailer);
      missing.add(mail.mailer);
      end(`there is no ${mail.mailer} (${mailer_setting}); told once`, isTold);
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
        // If an identity is given, Node.js also drops all supplementary groups.
        ...(identity === null || typeof identity === "string" ? {} : identity),
      });
    } catch (error) {
      // failed() is called later, because it begins the next mail: if many mails fail in succession, nested calls would exhaust the stack.
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
    send(mail, done = () => undefined) {
      if (mail.to.length === 0) return done("it has no address");
      if (waiting.length >= WAITING_MAX) {
        problem(`mail "${mail.subject}" dropped: ${waiting.length} are waiting to be sent`);
        return done("too many mails wait");
      }
      waiting.push({ mail, done });
      next();
    },
  };
}

/** The path of the mail program (M0). Throws an error with the reason if no program may be run. */
function programOf({ mailer }: Mail, identity: MailerOptions["identity"]): string {
  if (typeof identity === "string") throw new Error(identity);
  return identity === null ? mailer : trustedFile(mailer, [0]);
}

/** The addresses of a mail. An owner's name contains a host; if the site has a mail domain, the domain replaces the host. */
export function addressesOf({ to, to_owner }: Pick<Mail, "to" | "to_owner">, domain: string | undefined): readonly string[] {
  if (domain === undefined) return to;
  return to.map((address) => {
    const name = to_owner ? address.replace(/@.*$/, "") : address;
    return name.includes("@") ? name : `${name}@${domain}`;
  });
}
