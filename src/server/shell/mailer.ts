// Hands a mail to the mail program of the server (attribute mailer). A program that is missing or fails costs a log line, nothing else.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import type { Mail } from "../mail.ts";

/** Mail programs at work at once; more mail than that is dropped with a word to the log. */
const RUNNING_MAX = 16;
let running = 0;

export function sendMail(mail: Mail, problem: (text: string) => void): void {
  if (mail.to.length === 0 || !existsSync(mail.mailer)) return;
  if (running >= RUNNING_MAX) return problem(`mail "${mail.subject}" dropped: ${running} are being sent`);
  running++;
  const child = spawn(mail.mailer, ["-f", mail.from, "--", ...mail.to], { stdio: ["pipe", "ignore", "ignore"], cwd: "/" });
  const end = (why: string | null): void => {
    running--;
    if (why !== null) problem(`mail "${mail.subject}" failed: ${why}`);
  };
  child.once("error", (error) => end(error.message));
  child.once("exit", (code, signal) => end(code === 0 ? null : `${mail.mailer} ended with ${code ?? signal}`));
  child.stdin.on("error", () => undefined);
  child.stdin.end(`To: ${mail.to.join(", ")}\nSubject: ${mail.subject}\n\n${mail.body}`);
}
