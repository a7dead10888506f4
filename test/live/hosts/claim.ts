// `node claim.ts PBS_HOME HOST ADDRESS PORT FRAME`: asks the mom of a host for a task, with the certificate in PBS_HOME. FRAME: the data of task-spawn as JSON.
// Prints the answer, or why there is none.

import { OtherMoms } from "#mom/shell/other-moms.ts";
import { ownCredentials } from "#mom/shell/task-port.ts";
import type { TaskToMom } from "#protocol/task-link.ts";

const [home = "", host = "", address = "", port = "0", text = "{}"] = process.argv.slice(2);
const data = JSON.parse(text) as Omit<TaskToMom["task-spawn"], "token">;
const others = new OtherMoms({ credentials: () => ownCredentials(home), revoked: () => new Set(), server_host: "", server: "" });
const tell = (words: string): void => {
  process.stdout.write(`${words}\n`, () => process.exit(0));
};
const frame = (token: number) => ({ type: "task-spawn", data: { ...data, token } }) as const;
others.ask(
  { kind: "host", host, address, port: Number(port) },
  { job: data.job, frame },
  {
    answered: ({ type, data: answer }) => tell(`${type} ${JSON.stringify(answer)}`),
    lost: (why) => tell(`lost: ${why}`),
  },
);
