// The store in PostgreSQL has the properties of every store.

import { after, before, test } from "node:test";
import { STORE_CONTRACT, STORE_PROPERTIES } from "../../store/contract.ts";
import { LACK_OF_POSTGRES, type Postgres, startPostgres, withPostgres } from "./postgres-bed.ts";

let postgres: Postgres;

before(() => {
  if (LACK_OF_POSTGRES === false) postgres = startPostgres();
});
after(() => postgres?.remove());

for (const [name, check] of [...STORE_CONTRACT, ...STORE_PROPERTIES])
  test(`postgres store: ${name}`, { skip: LACK_OF_POSTGRES }, () => check(withPostgres(postgres)));
