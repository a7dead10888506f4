// The hosts that a job runs on, as its exec_host names them.

import { firstHost, hasSeveralEntries, hostsOf } from "#model/request/host-entry.ts";
import type { Job } from "./state.ts";

/** The host of the job's first chunk, where its mother superior is; "" of a job that has no vnodes. */
export const hostOfJob = (job: Job | undefined): string => firstHost(job?.attrs.exec_host ?? "");

/** All hosts, each once: the mother superior's first. */
export const hostsOfJob = (job: Job): readonly string[] => hostsOf(job.attrs.exec_host ?? "");

/** Whether several moms may have part in the job. */
export const isSpread = (job: Job): boolean => hasSeveralEntries(job.attrs.exec_host);
