// pbs_file_server: runs file-server.ts. It is a child of the mom, or of pbs_comm on a host without a mom, and ends with its parent: when stdin ends. The first line of
// stdin says what it needs (FileServerOrder). Each line on stdout is a message for the parent's log.

import { createInterface } from "node:readline";
import type { AskingHost } from "#protocol/host-questions.ts";
import { closeForeignDescriptors } from "#support/descriptors.ts";
import { isRecord } from "#support/guards.ts";
import { FileServer, type FileServerOptions } from "./file-server.ts";

const say = (text: string): void => void process.stdout.write(`${text.replaceAll("\n", " ")}\n`);

function optionsIn(line: string): FileServerOptions | null {
  const order: unknown = JSON.parse(line);
  if (!isRecord(order)) return null;
  const { home, servers, server, mode, port } = order;
  if (typeof home !== "string" || !Array.isArray(servers) || !servers.every(isPlace) || typeof server !== "string") return null;
  if (typeof port !== "number" || (mode !== "user" && mode !== "system")) return null;
  return { asking: { home, places: servers, server, own: mode === "user" }, port, mode, say };
}

const isPlace = (value: unknown): value is AskingHost["places"][number] =>
  isRecord(value) && typeof value["host"] === "string" && typeof value["port"] === "number";

function main(): void {
  closeForeignDescriptors();
  process.chdir("/");
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE"] as const) process.on(signal, () => undefined);
  process.stdout.on("error", () => process.exit(0));
  let server: FileServer | null = null;
  const lines = createInterface({ input: process.stdin });
  lines.once("line", (line) => {
    const options = optionsIn(line);
    if (options === null) {
      say("pbs_file_server: an order that cannot be read");
      process.exit(1);
    }
    server = new FileServer(options);
    void server.start();
  });
  lines.once("close", () => {
    server?.close();
    process.exit(0);
  });
}

main();
