// pbs_file_agent [bulk]: runs file-work.ts. It is a child of the mom, exchanges frames with it over stdin and stdout, and ends when stdin ends. Only an agent
// started with `bulk` copies big files.

import { messageOf } from "#support/caught.ts";
import { closeForeignDescriptors } from "#support/descriptors.ts";
import { frameLink } from "../host/frame-link.ts";
import { actAs } from "../host/posix.ts";
import type { AgentToMom, Finished, FinishRequest, MomToAgent } from "../job/agent-link.ts";
import {
  appendText,
  dropFile,
  finishJob,
  hasFarInput,
  hasFarOutput,
  isBulky,
  prepareJobs,
  prepareWithFar,
  type Sent,
  sendFar,
} from "./file-work.ts";
import { removeTmpdirs } from "./tree-removal.ts";

/** Finishes a job's files. An error becomes a failure of this job: it must not delay the other jobs, and the mom must not repeat the request for ever. */
function finishSafely(request: FinishRequest, sent?: Sent): Finished {
  try {
    return finishJob(request, sent, "later");
  } catch (error) {
    return { job: request.plan.job, run_count: request.plan.run_count, delivered: 0, total: 1, failures: [messageOf(error)] };
  }
}

function main(lane: string | undefined): void {
  closeForeignDescriptors();
  process.chdir("/");
  process.umask(0);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
  /** Does the work for each job. An error is reported for its job, and the other jobs continue. */
  const each = <T>(items: readonly T[], work: (item: T) => void, nameOf: (item: T) => string): void => {
    for (const item of items) {
      try {
        work(item);
      } catch (error) {
        link.send("agent-complaint", { job: nameOf(item), text: messageOf(error) });
      }
    }
    actAs(null);
  };
  /** number of frames whose answers wait until the TMPDIRs of their jobs are removed */
  let removing = 0;
  let ended = false;
  /** Finishes jobs. sent: what has been sent to other hosts of the complex before. */
  const finish = (jobs: readonly FinishRequest[], sent?: Sent): void => {
    const finished = jobs.map((job) => finishSafely(job, sent));
    removing++;
    void removeTmpdirs(jobs.map(({ plan }) => plan)).then(() => {
      link.send("agent-finished", { jobs: finished });
      removing--;
      if (ended && removing === 0) process.exit(0);
    });
  };
  /**
   * Resolves when the copies to and from other hosts that were requested so far are over. They run one after the other, because each of them changes the
   * identity of this thread.
   */
  let turn: Promise<void> = Promise.resolve();
  const inTurn = (work: () => Promise<void>): void => {
    turn = turn.then(work).catch((error: unknown) => {
      actAs(null);
      link.send("agent-complaint", { job: "", text: messageOf(error) });
    });
  };
  const link = frameLink<MomToAgent, AgentToMom>(
    { input: process.stdin, output: process.stdout },
    {
      "agent-prepare": ({ jobs }) => {
        const far = jobs.filter(hasFarInput);
        for (const request of far) inTurn(async () => link.send("agent-prepared", { jobs: [await prepareWithFar(request)] }));
        const now = jobs.filter((request) => !far.includes(request));
        if (now.length === 0) return;
        const prepared = prepareJobs(now);
        actAs(null);
        link.send("agent-prepared", { jobs: prepared });
      },
      "agent-finish": ({ jobs }) => {
        const bulky = lane === "bulk" ? [] : jobs.filter(isBulky);
        const far = jobs.filter((job) => !bulky.includes(job) && hasFarOutput(job));
        for (const request of far) inTurn(async () => finish([request], await sendFar(request)));
        const now = jobs.filter((job) => !bulky.includes(job) && !far.includes(job));
        if (now.length > 0) finish(now);
        if (bulky.length > 0) link.send("agent-bulky", { jobs: bulky.map(({ plan }) => ({ job: plan.job, run_count: plan.run_count })) });
      },
      "agent-append": ({ files }) => {
        each(
          files,
          (file) => appendText(file.owner, file.path, file.base64 === true ? Buffer.from(file.text, "base64") : Buffer.from(file.text)),
          (file) => file.path,
        );
        const runs = files.flatMap((file) => file.for ?? []);
        const asked = files.flatMap((file) => file.asked ?? []);
        if (runs.length + asked.length > 0) link.send("agent-appended", { runs, asked });
      },
      "agent-drop": ({ jobs }) => {
        for (const { paths } of jobs) each(paths, dropFile, (path) => path);
        link.send("agent-dropped", { jobs: jobs.map(({ job }) => job) });
      },
    },
    () => {
      ended = true;
      if (removing === 0) process.exit(0);
    },
  );
}

main(process.argv[2]);
