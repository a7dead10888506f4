// gridrls: resumes paused campaigns (docs/campaigns.md).

import type { Command } from "../../command.ts";
import { campaignSwitch } from "../../grid/campaign-switch.ts";

const USAGE = `Usage: gridrls CAMPAIGN...
       gridrls --help | --version
Resumes paused campaigns.
`;

export const run: Command = campaignSwitch("gridrls", USAGE, {}, "release");
