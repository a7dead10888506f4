// Questions to schedulers that a client waits for: why a job waits, what a scheduler is doing. A scheduler answers at any time, also during a cycle; nothing
// of it is stored.
//
// I1. A question is answered once: by the scheduler, by its loss, or after a time by nobody.

import { PBSE, reject } from "#model/pbse.ts";
import type { SchedQuestion } from "#protocol/sched-link.ts";
import { withServerFacts } from "./explained-facts.ts";
import { type Kernel, refuse } from "./kernel.ts";

const ANSWER_MS_MAX = 60_000;

/** Refuses with 15099 when the scheduler cannot be reached. token: of the request */
export function askSched(kernel: Kernel, name: string, question: SchedQuestion, token: number): void {
  const link = kernel.scheds.get(name)?.link ?? null;
  if (link === null) {
    refuse(kernel, token, reject(PBSE.NOSCHEDULER));
    return;
  }
  kernel.asked.set(token, { sched: name, kind: question.kind });
  kernel.timers.set(`asked:${token}`, kernel.now_ms + ANSWER_MS_MAX);
  kernel.out.scheds.push({ link, type: "sched-ask", data: { token, question } });
}

/** The scheduler's answer. value null: it does not know what it was asked about. */
export function schedAnswered(kernel: Kernel, name: string, token: number, value: unknown): void {
  const asked = kernel.asked.get(token);
  if (asked?.sched !== name) return;
  forgetQuestion(kernel, token);
  if (value === null) refuse(kernel, token, reject(PBSE.UNKJOBID));
  else
    kernel.out.clients.push({
      kind: "ok",
      token,
      value: asked.kind === "explain" ? withServerFacts(kernel.state, value, kernel.now_ms / 1000) : value,
    });
}

/** It will not answer any more. */
export function askedInVain(kernel: Kernel, name: string): void {
  for (const [token, { sched }] of kernel.asked) if (sched === name) questionOver(kernel, token);
}

/** Nobody has answered. */
export function questionOver(kernel: Kernel, token: number): void {
  if (!kernel.asked.has(token)) return;
  forgetQuestion(kernel, token);
  refuse(kernel, token, reject(PBSE.NOSCHEDULER));
}

export function forgetQuestion(kernel: Kernel, token: number): void {
  kernel.asked.delete(token);
  kernel.timers.clear(`asked:${token}`);
}
