// Property tests draw the same cases in every run, so that a red run is about the change at hand. PARTITA_SEED=N draws others; `random` a new seed, told.

import fc from "fast-check";

const asked = process.env.PARTITA_SEED ?? "20261120";
const seed = asked === "random" ? Math.floor(Math.random() * 2 ** 31) : Number(asked);
if (asked === "random") process.stderr.write(`PARTITA_SEED=${seed}\n`);
fc.configureGlobal({ seed });
