// `node runner-claim.ts SOCKET`: says hello to the server as a runner. Reads {"host", "token"} as JSON from the standard input, so that the token is in no
// argument; token null: none. Prints what the server does: closed, welcome or quit.

import { readFileSync } from "node:fs";
import type { MomHello } from "#protocol/mom-link.ts";
import { frameTypes } from "#protocol/schema-link.ts";
import { connectLink } from "#protocol/wire/ipc-transport.ts";

type Claim = { readonly host: string; readonly token: string | null };

const [path = ""] = process.argv.slice(2);
const { host, token } = JSON.parse(readFileSync(0, "utf8")) as Claim;
const hello: MomHello = {
  ...{ host, port: 15002, pid: process.pid, version: "1", jobs: [] },
  vnodes: [{ name: host, attrs: { resources_available: { ncpus: 64 } } }],
  ...(token === null ? {} : { runner: { token, age_s: 0 } }),
};
const end = (word: string): void => {
  process.stdout.write(`${word}\n`, () => process.exit(0));
};
const link = connectLink({
  path,
  types: frameTypes("server-to-mom"),
  onOpen: () => link.send("mom-hello", hello),
  onFrame(type) {
    if (type === "mom-quit") end("quit");
    if (type === "mom-welcome") end("welcome");
  },
  onClose: () => end("closed"),
});
