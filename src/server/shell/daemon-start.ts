// What the process in front of the server and the server in the background agree on.

import { join } from "node:path";
import type { Conf } from "#support/conf.ts";

/** The background process says here that it answers, or why not. */
export const READY_FD = 3;
export const READY_ENV = "PARTITA_READY_FD";

export const storeFile = (conf: Conf): string => join(conf.home, "server_priv/partita.db");
