// qenable: makes queues accept jobs (docs/reference/commands.md 3).

import type { Command } from "../../command.ts";
import { type QueueSwitch, queueSwitch } from "../../queue-switch.ts";

export const SWITCH: QueueSwitch = { command: "qenable", attribute: "enabled", value: "True" };

export const run: Command = queueSwitch(SWITCH);
