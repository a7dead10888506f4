// gridhold: pauses campaigns (docs/campaigns.md).

import type { Command } from "../../command.ts";
import { campaignSwitch } from "../../grid/campaign-switch.ts";

const USAGE = `Usage: gridhold CAMPAIGN...
       gridhold --help | --version
Pauses campaigns: nothing more is submitted, and jobs that live continue.
`;

export const run: Command = campaignSwitch("gridhold", USAGE, {}, "hold");
