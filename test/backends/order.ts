// An order for tests of backends, with the parts that a test names.

import type { RunnerOrder, RunnerRequest } from "#backends/contract/backend.ts";

export const NO_WISH = { start_s: null, priority: 0 } as const;

export function request(parts: Partial<RunnerRequest> = {}): RunnerRequest {
  return { ncpus: 1, mem_kb: null, tmp_kb: null, walltime_s: 3600, resources: {}, options: {}, diverted: false, ...parts };
}

export function order(parts: Partial<RunnerOrder> = {}): RunnerOrder {
  const count = parts.count ?? 1;
  return {
    tag: "k1.b.1",
    isFirst: true,
    count,
    owner: null,
    argv: ["/bin/sleep", "600"],
    env: {},
    tokens: Array.from({ length: count }, (_, index) => `secret-${index}`),
    request: request(),
    wish: NO_WISH,
    ...parts,
  };
}
