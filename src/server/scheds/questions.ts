// Questions that clients ask schedulers through the server: why a job waits, and what a scheduler is doing. A scheduler can
// answer at any time, even during a cycle. Answers are not stored.
//
// I1. A question is answered once: when the scheduler answers, when the scheduler is lost, or after a time limit.
// I2. A scheduler is sent one question at a time. The next question belongs to the user whose last question was sent longest ago, so that users with many
//     questions do not keep others waiting. Questions of one user are sent in the order of their arrival.

import { arrayIdOf } from "#model/job-id.ts";
import { limitOf } from "#model/limits/server-limits.ts";
import { PBSE, pbseText, Reject, reject } from "#model/pbse.ts";
import type { SchedQuestion } from "#protocol/sched-link.ts";
import { type Kernel, refuse } from "../engine/kernel.ts";
import { isExplanation, withServerFacts } from "../requests/explain/explained-facts.ts";
import { ownExplanation, withUnserved } from "../requests/explain/own-explanation.ts";
import { whyUnserved } from "./unserved.ts";

const ANSWER_MS_MAX = 60_000;

/**
 * Sends a question to a scheduler. Refuses with 15044 a user with too many open questions, and with 15099 if the scheduler
 * cannot be reached. token: the token of the client's request.
 */
export function askSched(kernel: Kernel, name: string, question: SchedQuestion, user: string, token: number): void {
  const max = limitOf(kernel.state, "max_user_questions");
  let open = 0;
  for (const asked of kernel.scheds.asked.values()) if (asked.user === user) open++;
  if (open >= max) {
    const text = `${pbseText(PBSE.RESCUNAV) ?? ""}: ${max} questions to schedulers are not answered yet (max_user_questions)`;
    refuse(kernel, token, new Reject(PBSE.RESCUNAV, text));
    return;
  }
  const link = kernel.scheds.by_name.get(name)?.link ?? null;
  if (link === null) {
    refuse(kernel, token, reject(PBSE.NOSCHEDULER));
    return;
  }
  kernel.scheds.asked.set(token, { sched: name, question, user });
  kernel.timers.set(`asked:${token}`, kernel.now_ms + ANSWER_MS_MAX);
  askNext(kernel, name);
}

/** Sends the scheduler its next question if it has answered the one before (I2). */
function askNext({ scheds, out }: Kernel, name: string): void {
  const runtime = scheds.by_name.get(name);
  if (runtime === undefined || runtime.link === null || runtime.question !== null) return;
  let next: { readonly token: number; readonly user: string; readonly question: SchedQuestion; readonly turn: number } | null = null;
  for (const [token, { sched, user, question }] of scheds.asked) {
    if (sched !== name) continue;
    const turn = runtime.turns.get(user) ?? 0;
    if (next === null || turn < next.turn) next = { token, user, question, turn };
  }
  if (next === null) {
    runtime.turns.clear();
    return;
  }
  const { token, user, question } = next;
  runtime.question = token;
  runtime.turns.set(user, ++scheds.questions_sent);
  out.scheds.push({ link: runtime.link, type: "sched-ask", data: { token, question } });
}

/** Passes a scheduler's answer to the client. value null: the scheduler does not know the job that the question is about. */
export function schedAnswered(kernel: Kernel, name: string, token: number, value: unknown): void {
  const runtime = kernel.scheds.by_name.get(name);
  if (runtime?.question === token) runtime.question = null;
  const asked = kernel.scheds.asked.get(token);
  if (asked?.sched === name) {
    forgetQuestion(kernel, token);
    if (value === null) refuse(kernel, token, reject(PBSE.UNKJOBID));
    else kernel.out.clients.push({ kind: "ok", token, value: asked.question.kind === "explain" ? completed(kernel, value) : value });
  }
  askNext(kernel, name);
}

/** Adds to an explanation the facts that only the server knows. */
function completed(kernel: Kernel, answer: unknown): unknown {
  const value = withServerFacts(kernel.state, answer, kernel.now_ms / 1000);
  if (!isExplanation(value)) return value;
  const queue = kernel.state.queues.get(value.queue);
  const unserved = queue === undefined ? null : whyUnserved(kernel, queue);
  return unserved === null ? value : withUnserved(value, unserved);
}

/** Called when a scheduler will no longer answer: ends all questions to it. */
export function askedInVain(kernel: Kernel, name: string): void {
  const runtime = kernel.scheds.by_name.get(name);
  if (runtime !== undefined) runtime.question = null;
  for (const [token, { sched }] of kernel.scheds.asked) if (sched === name) questionOver(kernel, token);
}

/** Ends a question without an answer of the scheduler. If the client has asked why a job waits, the server gives the reasons that it knows itself. */
export function questionOver(kernel: Kernel, token: number): void {
  const asked = kernel.scheds.asked.get(token);
  if (asked === undefined) return;
  forgetQuestion(kernel, token);
  const value = asked.question.kind === "explain" ? ownAnswer(kernel, asked.question.job) : null;
  if (value === null) refuse(kernel, token, reject(PBSE.NOSCHEDULER));
  else kernel.out.clients.push({ kind: "ok", token, value });
}

/** The server's own explanation why no scheduler looks at a job; null: a scheduler looks at it, or the job is gone. */
function ownAnswer(kernel: Kernel, id: string): unknown {
  const { state, now_ms } = kernel;
  const job = state.jobs.get(id) ?? state.jobs.get(arrayIdOf(id) ?? "");
  const queue = job === undefined ? undefined : state.queues.get(job.attrs.queue);
  const unserved = queue === undefined ? null : whyUnserved(kernel, queue);
  if (job === undefined || unserved === null) return null;
  const now_s = Math.floor(now_ms / 1000);
  return withServerFacts(state, ownExplanation(id, job, unserved, now_s), now_s);
}

/** Forgets a question. If it was sent to the scheduler, the scheduler still answers it, and gets its next question only after that. */
export function forgetQuestion(kernel: Kernel, token: number): void {
  kernel.scheds.asked.delete(token);
  kernel.timers.clear(`asked:${token}`);
}
