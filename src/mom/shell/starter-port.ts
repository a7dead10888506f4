// Connects to the starter over mom_priv/starter.sock, and starts it.

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { connect } from "node:net";
import { peerCredentials } from "#protocol/wire/peer-credentials.ts";
import { socketAddress } from "#protocol/wire/socket-path.ts";
import { messageOf } from "#support/caught.ts";
import type { StarterPort } from "../driver/ports.ts";
import { frameLink } from "../host/frame-link.ts";
import { siblingProgram } from "../host/sibling.ts";
import { type MomToStarter, STARTER_SOCKET, type StarterToMom } from "../job/starter-link.ts";

const READY_MS_MAX = 30_000;
/** The argument of a starter that ends together with its mom. */
const BOUND = "bound";

/** Makes the port for the starter. directory: mom_priv. bound: the starter and its jobs end together with this process (starter-main.ts M5). */
export function starterPort(directory: string, bound: boolean): StarterPort {
  return {
    connect(end) {
      const { address, release } = socketAddress(`${directory}/${STARTER_SOCKET}`);
      const socket = connect(address);
      socket.once("error", () => {
        release();
        end.absent();
      });
      socket.once("connect", () => {
        release();
        const peer = peerCredentials(socket);
        if (peer === null || (peer.uid !== 0 && peer.uid !== process.getuid?.())) {
          socket.destroy();
          end.foreign(`starter.sock is served by uid ${peer?.uid ?? "unknown"}: not our starter`);
          return;
        }
        socket.removeAllListeners("error");
        end.connected(frameLink<StarterToMom, MomToStarter>(socket, end.heard, () => end.lost()));
      });
    },
    launch(done) {
      try {
        launchStarter(directory, bound, done);
      } catch (error) {
        done(messageOf(error));
      }
    },
  };
}

/**
 * Starts a starter that outlives the mom. done: called when the starter listens, or when it has ended because another one is running. Throws if its log cannot
 * be opened.
 */
function launchStarter(directory: string, bound: boolean, done: (fault: string | null) => void): void {
  const log = openSync(`${directory}/starter.log`, "a", 0o600);
  const child: ChildProcess = spawn(process.execPath, [siblingProgram("starter"), directory, ...(bound ? [BOUND] : [])], {
    argv0: "pbs_starter",
    detached: true,
    stdio: ["ignore", "pipe", log, ...(bound ? (["pipe"] as const) : [])],
    cwd: "/",
    env: { PATH: "/usr/bin:/bin:/usr/sbin:/sbin", ...(process.env["TZ"] === undefined ? {} : { TZ: process.env["TZ"] }) },
  });
  closeSync(log);
  const end = (fault: string | null): void => {
    clearTimeout(timer);
    child.stdout?.destroy();
    // The other end of this pipe is open in the starter as long as this process exists.
    const life = child.stdio[3];
    if (life !== null && life !== undefined && "unref" in life && typeof life.unref === "function") life.unref();
    child.removeAllListeners();
    child.on("error", () => undefined);
    child.unref();
    done(fault);
  };
  const timer = setTimeout(() => end("it does not get ready"), READY_MS_MAX);
  child.stdout?.once("data", () => end(null));
  child.once("error", (error) => end(error.message));
  child.once("exit", (status) => end(status === 3 ? null : `ended with status ${status}; see ${directory}/starter.log`));
}
