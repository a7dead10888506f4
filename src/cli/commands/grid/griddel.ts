// griddel: ends campaigns, or holds and releases them with CiGri's options (docs/campaigns.md).

import type { Command } from "../../command.ts";
import { campaignSwitch } from "../../grid/campaign-switch.ts";

const USAGE = `Usage: griddel CAMPAIGN...
       griddel -p CAMPAIGN...
       griddel -r CAMPAIGN...
       griddel --help | --version
Ends campaigns and their jobs.
  -p  pauses campaigns: nothing more is submitted, and jobs that live continue
  -r  resumes paused campaigns
`;

export const run: Command = campaignSwitch("griddel", USAGE, { p: "hold", r: "release" }, "delete");
