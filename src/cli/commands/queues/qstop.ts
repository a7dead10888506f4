// qstop: prevents jobs in queues from starting (docs/reference/commands.md 3).

import type { Command } from "../../command.ts";
import { type QueueSwitch, queueSwitch } from "../../queue-switch.ts";

export const SWITCH: QueueSwitch = { command: "qstop", attribute: "started", value: "False" };

export const run: Command = queueSwitch(SWITCH);
