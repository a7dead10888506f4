// Starts the processes of file agents.

import { spawn } from "node:child_process";
import type { AgentPort } from "../driver/ports.ts";
import { frameLink } from "../host/frame-link.ts";
import { siblingProgram } from "../host/sibling.ts";
import type { AgentToMom, MomToAgent } from "../job/agent-link.ts";

/** Makes the port for file agents. complain: called about a process that cannot be started. */
export function agentPort(complain: (text: string) => void): AgentPort {
  return {
    launch(lane, heard, closed) {
      const child = spawn(process.execPath, [siblingProgram("file-agent"), lane], {
        argv0: "pbs_file_agent",
        stdio: ["pipe", "pipe", "inherit"],
        cwd: "/",
        env: { PATH: "/usr/bin:/bin" },
      });
      child.once("error", (error) => complain(`file agent: ${error.message}`));
      return frameLink<AgentToMom, MomToAgent>({ input: child.stdout, output: child.stdin }, heard, closed);
    },
  };
}
