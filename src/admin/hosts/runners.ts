// `partita runners`: backends and their runners. `partita confirm-dead`: lost runners count as dead.

import { collectInto, connectServer } from "#protocol/client.ts";
import type { Request } from "#protocol/messages.ts";
import type { ConfirmedDead, RunnersItem, RunnersRest, RunnersView } from "#protocol/runners-view.ts";
import type { Conf } from "#support/conf.ts";
import { localStamper } from "#support/local-time.ts";
import { AdminError } from "../complex/complex-home.ts";
import { table } from "./table.ts";

async function ask<T>(conf: Conf, request: Request, onPart: (items: readonly unknown[]) => void = () => undefined): Promise<T> {
  const link = await connectServer(conf);
  try {
    const reply = await link.request(request, { onPart });
    if (!reply.ok) throw new AdminError(reply.text?.trim() ?? `error ${reply.code}`);
    return reply.value as T;
  } finally {
    link.close();
  }
}

/** Shows backends and runners as text or JSON. Throws AdminError, ServerUnreachable. */
export async function showRunners(conf: Conf, json: boolean): Promise<string> {
  const items: RunnersItem[] = [];
  const { backends } = await ask<RunnersRest>(conf, { kind: "view-runners" }, collectInto(items));
  const view: RunnersView = {
    backends,
    waiting: items.flatMap((item) => ("waiting" in item ? [item.waiting] : [])),
    runners: items.flatMap((item) => ("runner" in item ? [item.runner] : [])),
  };
  return json ? JSON.stringify(view, null, 2) : asText(view);
}

function asText({ backends, waiting, runners }: RunnersView): string {
  if (backends.length === 0) return 'There is no backend yet: qmgr -c "create backend NAME type=local"';
  const stamper = localStamper();
  const time = (at_s: number): string => stamper.stamp(at_s * 1000);
  const number = (value: number): string => String(value);
  const blocks = [
    table(
      ["backend", "type", "partition", "state", "asked", "idle", "busy", "lost", "max"],
      backends.map((each) => [
        each.backend,
        each.type,
        each.partition,
        each.state,
        ...[each.asked, each.idle, each.busy, each.lost, each.max_runners].map(number),
      ]),
    ),
  ];
  const errors = backends.flatMap(({ backend, last_error, last_error_s }) =>
    last_error === null ? [] : [`${backend}, last error${last_error_s === null ? "" : ` at ${time(last_error_s)}`}: ${last_error}`],
  );
  if (errors.length > 0) blocks.push(errors);
  if (waiting.length > 0)
    blocks.push(
      table(
        ["waiting jobs", "bucket"],
        waiting.map(({ jobs, bucket }) => [number(jobs), bucket]),
      ),
    );
  if (runners.length > 0)
    blocks.push(
      table(
        ["runner", "id", "state", "jobs", "until", "bucket", "backend says"],
        runners.map((each) => [
          each.runner,
          each.backend_id ?? "-",
          each.state,
          each.jobs.join(",") || "-",
          each.end_s === null ? "-" : time(each.end_s),
          each.bucket,
          each.reason,
        ]),
      ),
    );
  return blocks.map((lines) => lines.join("\n")).join("\n\n");
}

/** Tells the server that lost runners are dead. Returns what happened. */
export async function confirmDead(conf: Conf, names: readonly string[], age_s: number): Promise<string> {
  const { confirmed } = await ask<ConfirmedDead>(conf, { kind: "confirm-dead", names, age_s });
  return confirmed.length === 0 ? "no runner is lost" : confirmed.map((name) => `${name} counts as dead`).join("\n");
}
