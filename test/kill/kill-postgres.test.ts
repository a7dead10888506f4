// Short jobs while the server, its scheduler, the mom and the PostgreSQL with the store are killed at random.

import { after, before, test } from "node:test";
import { LACK_OF_POSTGRES, type Postgres, startPostgres } from "../live/store/postgres-bed.ts";
import { beginFlow, checkFlow, endFlow } from "./job-flow.ts";

let postgres: Postgres;

before(async () => {
  if (LACK_OF_POSTGRES !== false) return;
  postgres = startPostgres({ durable: true });
  await beginFlow({ conf: { PARTITA_STORE: "postgres" }, files: { "server_priv/database.conf": postgres.conf() } });
});
after(async () => {
  await endFlow();
  postgres?.remove();
});

test(
  "every job is accounted for exactly once while server and database are killed at random",
  { skip: LACK_OF_POSTGRES, timeout: 600_000 },
  (t) =>
    checkFlow(t, {
      jobs: 800,
      victims: ["server", "server", "server", "sched", "mom"],
      killOther: () => {
        postgres.kill();
        postgres.start();
      },
    }),
);
