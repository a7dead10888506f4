// Commands `partita report` and `partita seff` with their options. Their code is loaded only when they are called.

import type { CommandModule } from "yargs";
import { complexConf } from "../complex/complex-home.ts";

type Common = { readonly home?: string | undefined };
type ReportArgs = Common & {
  readonly by: string;
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly user: string | undefined;
  readonly accounting: string | undefined;
  readonly F: "json" | "csv" | undefined;
};

export const reportCommand: CommandModule<Common, ReportArgs> = {
  command: "report",
  describe: "usage of a period from the accounting files: jobs, failures, cpu hours, waits, and how much of what jobs asked for they used",
  builder: (y) =>
    y
      .option("by", {
        type: "string",
        requiresArg: true,
        default: "user",
        describe: "user, group, project, account, queue, partition, host, month or day; several with commas between them",
      })
      .option("from", { type: "string", requiresArg: true, describe: "first day YYYY-MM-DD, or month YYYY-MM (default: all)" })
      .option("to", { type: "string", requiresArg: true, describe: "last day YYYY-MM-DD, or month YYYY-MM (default: all)" })
      .option("user", { type: "string", requiresArg: true, describe: "only jobs of these users, with commas between them" })
      .option("accounting", { type: "string", requiresArg: true, describe: "a directory of accounting files (default: the complex's own)" })
      .option("F", { choices: ["json", "csv"] as const, requiresArg: true, describe: "the format, for programs" }),
  handler: async (argv) => {
    const { usageReport } = await import("./usage-report.ts");
    const shown = process.stderr.isTTY ? (share: number) => void process.stderr.write(`\r${Math.round(100 * share)} %`) : () => undefined;
    const options = {
      by: argv.by,
      from: argv.from ?? null,
      to: argv.to ?? null,
      users: argv.user === undefined ? [] : argv.user.split(","),
      accounting: argv.accounting ?? null,
      format: argv.F ?? "text",
    } as const;
    const text = await usageReport(() => complexConf(argv.home), options, shown);
    if (process.stderr.isTTY) process.stderr.write("\r      \r");
    process.stdout.write(text);
  },
};

type SeffArgs = Common & { readonly job: string; readonly F: "json" | undefined };

export const seffCommand: CommandModule<Common, SeffArgs> = {
  command: "seff <job>",
  describe: "how much of the cpus, time and memory that a job asked for it has used; while the job runs, so far",
  builder: (y) =>
    y
      .positional("job", { type: "string", demandOption: true, describe: "12, 12.server, 12[3]" })
      .option("F", { choices: ["json"] as const, requiresArg: true, describe: "json: as JSON" }),
  handler: async (argv) => {
    const { seff } = await import("./seff.ts");
    process.stdout.write(await seff(complexConf(argv.home), argv.job, argv.F === "json"));
  },
};
