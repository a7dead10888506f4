// The HTTP server of pbs_web, and the bounds on what its clients can hold.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { userInfo } from "node:os";
import { getRequestListener } from "@hono/node-server";
import type { Conf } from "#support/conf.ts";
import { allowance } from "../access/allowance.ts";
import { webApp } from "./app.ts";
import { webMetrics } from "./metrics.ts";
import { serverLink } from "./server-link.ts";
import { watchedTokens } from "./token-file.ts";

/** Bounds on connections. Times in ms. A client that sends its header or body more slowly is cut off. */
const CONNECTIONS_MAX = 1000;
const HEADERS_MS_MAX = 10_000;
const REQUEST_MS_MAX = 30_000;
const IDLE_MS_MAX = 10_000;
const HEADER_BYTES_MAX = 16_384;

/** Bounds on the requests of one user. */
const REQUESTS_BURST = 200;
const REQUESTS_PER_S = 50;
const USERS_MAX = 10_000;

export type Service = { readonly port: number; close(): Promise<void> };

/** Starts to serve. Rejects with the system's error, for example if the port is taken. */
export async function startService(options: {
  readonly conf: Conf;
  readonly address: string;
  readonly port: number;
  readonly note: (text: string) => void;
}): Promise<Service> {
  const { conf, address, port, note } = options;
  const link = serverLink(conf);
  const metrics = webMetrics(link.ask, Date.now);
  const { username, homedir, shell } = userInfo();
  const app = webApp({
    ask: metrics.measured(link.ask),
    metrics,
    submitter: { user: username, home: homedir, shell: shell ?? "/bin/sh" },
    tokens: watchedTokens(conf.home),
    allowance: allowance({ burst: REQUESTS_BURST, per_s: REQUESTS_PER_S, users_max: USERS_MAX }),
    now_ms: Date.now,
    note,
  });
  const server = createServer(
    { headersTimeout: HEADERS_MS_MAX, requestTimeout: REQUEST_MS_MAX, keepAliveTimeout: IDLE_MS_MAX, maxHeaderSize: HEADER_BYTES_MAX },
    getRequestListener(app.fetch, { overrideGlobalObjects: false }),
  );
  server.maxConnections = CONNECTIONS_MAX;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, address, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
      link.close();
    },
  };
}
