// Carries out the actions that handlers request: frames to schedulers and moms, answers to clients, and actions for the shell.
//
// I1. Nothing is sent or done before the commit of the batch: everything is put into the kernel's outbox (kernel.out).

import { PBSE } from "#model/pbse.ts";
import type { SchedCommand } from "#protocol/sched-link.ts";
import type { Kernel } from "../engine/kernel.ts";
import { mailFor, mailForResv } from "../engine/mail.ts";
import type { Action } from "../engine/transaction.ts";
import { answerAtStart } from "../jobs/start-wait.ts";
import { awaitEnd, awaitRerun, waitFor } from "../jobs/waiters.ts";
import { discardOnHost, messageJob, modifyJobOnMom, signalJob, startJob, terminateJob } from "../moms/orders.ts";
import { releaseSisters } from "../moms/sisters.ts";
import { runnerGone } from "../runners/arrival.ts";
import * as cycles from "../scheds/cycles.ts";
import { askSched } from "../scheds/questions.ts";
import * as scheds from "../scheds/session.ts";
import { beginShutdown } from "./shutdown.ts";

export function carryOut(kernel: Kernel, action: Action): void {
  switch (action.kind) {
    case "trigger-sched":
      cycles.trigger(kernel, action.sched, action.command as SchedCommand);
      break;
    case "run-by-sched":
      cycles.requestRun(kernel, action.sched, action.job, action.token);
      break;
    case "ask-sched":
      askSched(kernel, action.sched, action.question, action.user, action.token);
      break;
    case "await-start":
      answerAtStart(kernel, action.job, action.token);
      break;
    case "await-end":
      awaitEnd(kernel, action.job, action.token);
      break;
    case "await-rerun":
      awaitRerun(kernel, action.job, action.token);
      break;
    case "shutdown":
      beginShutdown(kernel, action);
      break;
    case "configure-sched":
      cycles.configure(kernel, action.sched);
      break;
    case "start-sched":
      scheds.startProcess(kernel, action.sched);
      break;
    case "stop-sched":
      scheds.stopProcess(kernel, action.sched);
      break;
    case "start-job":
      startJob(kernel, action.job);
      break;
    case "terminate-job":
      terminateJob(kernel, action.job, action.why, action.force === true, action.over === true);
      break;
    case "release-sisters":
      releaseSisters(kernel, action.job, action.hosts);
      break;
    case "signal-job":
      signalJob(kernel, action.job, action.token, action.signal);
      break;
    case "discard-on-host":
      discardOnHost(kernel, action.host, action.job);
      break;
    case "message-job":
      messageJob(kernel, action.job, action.token, action.files, action.message);
      break;
    case "modify-job-on-mom":
      modifyJobOnMom(kernel, action.job, action.attrs);
      break;
    case "reply":
      if (action.ok)
        kernel.out.clients.push({ kind: "ok", token: action.token, ...(action.value === undefined ? {} : { value: action.value }) });
      else kernel.out.clients.push({ kind: "error", token: action.token, code: action.code ?? PBSE.INTERNAL, text: action.text ?? null });
      break;
    case "mail": {
      const job = kernel.state.jobs.get(action.job);
      const mail = job === undefined ? null : mailFor(kernel.state.server, job, action.point, action.text);
      if (mail !== null) kernel.out.actions.push({ kind: "send-mail", mail });
      break;
    }
    case "await-resv":
      waitFor(kernel.resvs.waiters, action.resv, action.token);
      kernel.timers.set(`resv-wait:${action.resv}`, action.until_s * 1000);
      break;
    case "answer-resv":
      for (const token of kernel.resvs.waiters.get(action.resv) ?? [])
        kernel.out.clients.push({ kind: "ok", token, value: { id: action.resv, word: action.word } });
      kernel.resvs.waiters.delete(action.resv);
      break;
    case "mail-resv": {
      const resv = kernel.state.resvs.get(action.resv);
      const mail = resv === undefined ? null : mailForResv(kernel.state.server, resv, action.point, action.text);
      if (mail !== null) kernel.out.actions.push({ kind: "send-mail", mail });
      break;
    }
    case "runner-dead": {
      const runner = kernel.state.runners.get(action.runner);
      if (runner !== undefined) runnerGone(kernel, runner, `confirmed dead by ${action.by}`, "dead");
      break;
    }
    case "backup":
    case "order-other":
    case "stop-secondary":
    case "ask-authority":
      kernel.out.actions.push(action);
      break;
    default: {
      const unreachable: never = action;
      return unreachable;
    }
  }
}
