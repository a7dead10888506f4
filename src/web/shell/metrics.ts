// /metrics: asks the server for figures, and adds those of this process. Answers are kept for a moment, so that frequent scrapes, for which nobody needs a token
// on the loopback address, are no load on the server.

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { StatusItem, StatusObject } from "#protocol/messages.ts";
import type { SchedView } from "#protocol/sched-view.ts";
import type { Ask } from "../api/objects.ts";
import { type Figure, figuresOf, SEEN_ATTRS, type Seen, upFigure } from "../metrics/figures.ts";

const KEPT_MS = 1000;
/** Bounds of the histogram of the server's answers, in seconds. */
const ANSWER_BUCKETS_S = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30];

export type Metrics = {
  readonly content_type: string;
  /** Returns the text of /metrics. */
  text(): Promise<string>;
  /** Measures the server's answers: returns a function that does the same as the given one. */
  measured(ask: Ask): Ask;
  /** Counts an answer to a client. */
  answered(status: number): void;
};

export function webMetrics(ask: Ask, now_ms: () => number): Metrics {
  const own = new Registry();
  collectDefaultMetrics({ register: own, prefix: "partita_web_" });
  const answers = new Counter({
    name: "partita_web_answers_total",
    help: "answers to clients by status",
    labelNames: ["status"],
    registers: [own],
  });
  const server_s = new Histogram({
    name: "partita_server_answer_seconds",
    help: "time that the server takes for a request of pbs_web, with its commit if there is one",
    labelNames: ["kind"],
    buckets: ANSWER_BUCKETS_S,
    registers: [own],
  });
  const measured =
    (inner: Ask): Ask =>
    async (request, onPart) => {
      const end = server_s.startTimer({ kind: request.kind });
      const reply = await inner(request, onPart);
      end();
      return reply;
    };
  let kept: { readonly at_ms: number; readonly text: Promise<string> } | null = null;
  return {
    content_type: own.contentType,
    measured,
    answered: (status) => answers.inc({ status: String(status) }),
    async text() {
      const at_ms = now_ms();
      if (kept === null || at_ms - kept.at_ms >= KEPT_MS) kept = { at_ms, text: serverText(measured(ask)) };
      return `${await kept.text}${await own.metrics()}`;
    },
  };
}

/** The figures of the server as text. A server that does not answer is a figure as well. */
async function serverText(ask: Ask): Promise<string> {
  let figures: readonly Figure[];
  try {
    figures = [upFigure(true), ...figuresOf(await look(ask))];
  } catch {
    figures = [upFigure(false)];
  }
  const registry = new Registry();
  for (const { name, help, type, samples } of figures) {
    const labelNames = Object.keys(samples[0]?.labels ?? {});
    if (type === "counter") {
      const counter = new Counter({ name, help, labelNames, registers: [registry] });
      for (const { labels, value } of samples) counter.inc(labels, value);
    } else {
      const gauge = new Gauge({ name, help, labelNames, registers: [registry] });
      for (const { labels, value } of samples) gauge.set(labels, value);
    }
  }
  return registry.metrics();
}

async function look(ask: Ask): Promise<Seen> {
  const status = async (object: StatusObject & keyof typeof SEEN_ATTRS): Promise<readonly StatusItem[]> => {
    const items: StatusItem[] = [];
    await ask(
      { kind: "status", object, ids: [], attrs: SEEN_ATTRS[object] },
      (part) => void items.push(...(part as readonly StatusItem[])),
    );
    return items;
  };
  const [server, queues, nodes, scheds] = await Promise.all([status("server"), status("queue"), status("node"), status("sched")]);
  const views = new Map<string, SchedView>();
  for (const { id } of scheds) {
    const reply = await ask({ kind: "view-sched", sched: id });
    if (reply.ok) views.set(id, reply.value as SchedView);
  }
  return { server, queues, nodes, scheds, views };
}
