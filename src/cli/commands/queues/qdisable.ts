// qdisable: stops queues from accepting jobs (docs/reference/commands.md 3).

import type { Command } from "../../command.ts";
import { type QueueSwitch, queueSwitch } from "../../queue-switch.ts";

export const SWITCH: QueueSwitch = { command: "qdisable", attribute: "enabled", value: "False" };

export const run: Command = queueSwitch(SWITCH);
