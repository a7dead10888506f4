// The hosts that a job runs on, as its exec_host names them.

import { firstHost, hasSeveralEntries, hostsOf } from "#model/request/host-entry.ts";
import type { Job } from "./state.ts";

/** The host of the job's first chunk, where its mother superior is; "" for a job without vnodes. */
export const hostOfJob = (job: Job | undefined): string => firstHost(job?.attrs.exec_host ?? "");

/** All hosts, each once, with that of the mother superior first. */
export const hostsOfJob = (job: Job): readonly string[] => hostsOf(job.attrs.exec_host ?? "");

/** Whether several moms may take part in the job. */
export const isSpread = (job: Job): boolean => hasSeveralEntries(job.attrs.exec_host);
