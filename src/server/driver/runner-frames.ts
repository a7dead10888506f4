// What the server believes of a runner that is a process of an ordinary user (system mode). Pure.
//
// The user can read the token of the runner, and can therefore be the runner. So the server takes such a runner for what a user is who speaks about jobs of his own: the core lets
// a mom speak about jobs on its own vnode only (../moms/host.ts I3), checks that these jobs are of the runner's user (../jobs/run.ts), and this file leaves out all that only a mom
// of root may say.
//
// F1. The runner says nothing about vnodes, resources of the site, hooks or other hosts. Its vnode has the amounts of its bucket (../runners/arrival.ts A1).
// F2. Texts have no control characters, so that none of them can begin another line of a log or of the accounting file. Usage names known resources with short values.

import type { Resources } from "#model/resource-table.ts";
import type { MomHello, MomReport, MomToServer, Usage } from "#protocol/mom-link.ts";
import type { FrameOf } from "#protocol/schema-link.ts";

type MomFrame = FrameOf<"mom-to-server">;
type UsageOfJobs = MomToServer["mom-usage"]["jobs"];

/** The longest text that is taken. */
const TEXT_CHARS_MAX = 1024;
/** A value of what was used. */
const AMOUNT = /^[\w.:+-]{1,64}$/;

/** Returns what counts of the hello of a user's runner. pid: as the kernel says it. */
export function runnerHello(hello: MomHello, pid: number): MomHello {
  const { host, port, version, jobs, outputs, pongs, runner, grace } = hello;
  return {
    host,
    port,
    pid,
    version: plain(version),
    vnodes: [],
    jobs,
    ...(outputs === undefined ? {} : { outputs }),
    ...(pongs === undefined ? {} : { pongs }),
    ...(runner === undefined ? {} : { runner }),
    ...(grace === undefined ? {} : { grace }),
  };
}

/** Returns what counts of another frame of a user's runner; null: nothing (F1). */
export function runnerFrame(frame: MomFrame, resources: Resources): MomFrame | null {
  switch (frame.type) {
    case "mom-hello":
    case "mom-vnodes":
    case "mom-site":
    case "mom-hook":
    case "mom-joined":
    case "mom-got":
      return null;
    case "mom-kept":
      return frame.data.why === "checkpoint" ? { type: "mom-kept", data: { ...frame.data, text: plain(frame.data.text) } } : null;
    case "mom-started":
      return { type: "mom-started", data: { ...frame.data, jobdir: plain(frame.data.jobdir) } };
    case "mom-usage":
      return { type: "mom-usage", data: { jobs: usages(frame.data.jobs, resources) } };
    case "mom-report":
      return { type: "mom-report", data: report(frame.data, resources) };
    case "mom-obit": {
      const { used, message, ...data } = frame.data;
      return {
        type: "mom-obit",
        data: { ...data, used: usageOf(used, resources), ...(message === undefined ? {} : { message: plain(message) }) },
      };
    }
    case "mom-pong": {
      const { ill, ...data } = frame.data;
      return { type: "mom-pong", data: { ...data, ...(ill === undefined ? {} : { ill: plain(ill) }) } };
    }
    case "mom-result": {
      const { text, ...data } = frame.data;
      return { type: "mom-result", data: { ...data, ...(text === undefined ? {} : { text: plain(text) }) } };
    }
    case "mom-accepted":
    case "mom-staging-out":
    case "mom-idled":
    case "mom-busy":
      return frame;
    default: {
      const unreachable: never = frame;
      return unreachable;
    }
  }
}

function report({ number, grace, clock_ms, unheard, ill, jobs }: MomReport, resources: Resources): MomReport {
  return {
    number,
    ...(grace === undefined ? {} : { grace }),
    ...(clock_ms === undefined ? {} : { clock_ms }),
    ...(unheard === undefined ? {} : { unheard }),
    ...(ill === undefined ? {} : { ill: plain(ill) }),
    ...(jobs === undefined ? {} : { jobs: usages(jobs, resources) }),
  };
}

const usages = (jobs: UsageOfJobs, resources: Resources): UsageOfJobs =>
  jobs.map(({ used, ...run }) => ({ ...run, used: usageOf(used, resources) }));

function usageOf(used: Usage, resources: Resources): Usage {
  return Object.fromEntries(
    Object.entries(used).filter(
      ([name, value]) => resources.has(name) && (typeof value === "number" ? Number.isFinite(value) && value >= 0 : AMOUNT.test(value)),
    ),
  );
}

/** Returns a text without control characters, cut to TEXT_CHARS_MAX (F2). */
const plain = (text: string): string => text.slice(0, TEXT_CHARS_MAX).replaceAll(/\p{Cc}/gu, " ");
