// qstart: allows jobs in queues to start (docs/reference/commands.md 3).

import type { Command } from "../../command.ts";
import { type QueueSwitch, queueSwitch } from "../../queue-switch.ts";

export const SWITCH: QueueSwitch = { command: "qstart", attribute: "started", value: "True" };

export const run: Command = queueSwitch(SWITCH);
