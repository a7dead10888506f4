// The hosts that a job runs on, as its exec_host names them.

import { firstHost, hasSeveralEntries, hostsOf } from "#model/request/host-entry.ts";
import type { Job } from "./state.ts";

/** The host of the job's first chunk, where its mother superior is; "" for a job without vnodes. */
export const hostOfJob = (job: Job | undefined): string => firstHost(job?.attrs.exec_host ?? "");

/** All hosts of the job, each once. The first is the host of the mother superior. */
export const hostsOfJob = (job: Job): readonly string[] => hostsOf(job.attrs.exec_host ?? "");

/** Whether the job may have several hosts, and so several moms. */
export const isSpread = (job: Job): boolean => hasSeveralEntries(job.attrs.exec_host);
