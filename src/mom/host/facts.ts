// Facts about the machine: processors, memory, architecture, the present boot.

import { readFileSync } from "node:fs";
import { availableParallelism, cpus, totalmem } from "node:os";
import type { HostFacts } from "../config/vnode-def.ts";

const KB = 1024;

/** Returns the facts about this host. host: the name of its natural vnode. */
export function hostFacts(host: string): HostFacts {
  return { host, arch: process.platform, ncpus: cpus().length || availableParallelism(), mem_kb: memoryKb() };
}

/**
 * Returns MemTotal of /proc/meminfo, the value that administrators know. os.totalmem() is not used first: in a container it may be the memory of the machine or
 * of the container.
 */
function memoryKb(): number {
  try {
    const match = /^MemTotal:\s+(\d+) kB/m.exec(readFileSync("/proc/meminfo", "latin1"));
    if (match !== null) return Number(match[1]);
  } catch {
    // There is no /proc/meminfo: os.totalmem() is used.
  }
  return Math.floor(totalmem() / KB);
}

export const bootId = (): string => readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
