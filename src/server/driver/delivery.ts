// What follows the commit of a batch: its log and accounting records, then its answers and frames, and then its actions.

import { PBSE, pbseText } from "#model/pbse.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Core } from "../core/core.ts";
import type { Batch, ShellAction } from "../engine/batch.ts";
import type { DueRecord } from "../state/rows.ts";
import { recoverAccounting } from "./accounting-recovery.ts";
import type { HistorySteps } from "./history-steps.ts";
import type { ServerPorts } from "./ports.ts";

/** What the delivery needs of its driver. */
type Driver = {
  readonly history: HistorySteps;
  /** Returns the present core. It is replaced by a new one when the state is loaded again. */
  core(): Core;
  do(work: (core: Core, now_ms: number) => void): void;
  /** Refuses an open request with 15010. */
  refuse(token: number, text: string): void;
  /** Ends the server. scheds: true: with its schedulers */
  end(scheds: boolean): void;
};

/** Delivers committed batches. This is a class because it counts the accounting records that could not be written. */
export class Delivery {
  readonly #ports: ServerPorts;
  readonly #driver: Driver;
  #lost_records = 0;

  constructor(ports: ServerPorts, driver: Driver) {
    this.#ports = ports;
    this.#driver = driver;
  }

  /** Called after the commit of a batch. at_s: the time of its records in the accounting file. */
  deliver({ batch, at_s }: { readonly batch: Batch; readonly at_s: number }): void {
    const { watch, log, files, links, clients, processes } = this.#ports;
    const { state } = this.#driver.core();
    watch?.delivered?.(batch);
    log.records(batch.logs);
    this.#account(batch, at_s);
    if (batch.changes.resources.size > 0) files.resources(state.resources.values());
    if (batch.changes.server) links.setLimits(state);
    for (const name of batch.changes.hooks) files.hook(name, state.hooks.get(name));
    // The scheduler's directories are made first, because a client that has created a scheduler may write files there as soon as it has the answer.
    for (const action of batch.actions) if (action.kind === "prepare-sched") processes.prepare(action.sched);
    clients.answer(batch.clients);
    for (const frame of batch.scheds) {
      links.toSched(frame);
      if (frame.type === "sched-refused") links.end(frame.link);
    }
    links.toMoms(batch.moms);
    for (const frame of batch.runners) {
      links.toRunners?.(frame);
      if (frame.type === "runners-refused") links.end(frame.link);
    }
    for (const action of batch.actions) this.#act(action);
    if (batch.changes.purged_arrays.size > 0) this.#driver.history.count();
  }

  /** Writes the accounting file. The next commit deletes these records from the store, so they must be in the file by then (accounting-recovery.ts). */
  #account({ accounting: records }: Batch, at_s: number): void {
    if (records.length === 0) return;
    const { accounting } = this.#ports;
    for (const { type, id, text } of records) accounting.record(type, id, text, at_s);
    accounting.flush();
    this.#tellLost();
  }

  /** Writes the records of the last batch in the store that the accounting file lacks. Called when the state was loaded, before anything is committed. */
  recover(due: readonly DueRecord[]): void {
    if (due.length === 0) return;
    const { accounting, log } = this.#ports;
    const written = recoverAccounting(due, accounting);
    if (written > 0) log.note(LOG_EVENT.SYSTEM, `${written} accounting records written that were in the store only`);
    this.#tellLost();
  }

  #tellLost(): void {
    const { accounting, log } = this.#ports;
    if (accounting.lost > this.#lost_records)
      log.note(LOG_EVENT.ERROR, `${accounting.lost - this.#lost_records} accounting records lost: cannot be written`);
    this.#lost_records = accounting.lost;
  }

  #act(action: ShellAction): void {
    const { processes, links, log, files, mail, store } = this.#ports;
    switch (action.kind) {
      case "start-sched":
        return processes.start(action.sched);
      case "stop-sched":
        return processes.stop(action.sched, action.pid);
      case "look-at-sched":
        return processes.look(action.sched, action.pid, (sight) =>
          this.#driver.do((core, now_ms) => core.schedSeen(action.sched, sight, now_ms)),
        );
      case "kill-sched":
        return processes.kill(action.sched, action.pid);
      case "prepare-sched":
        return;
      case "say-sched":
        return processes.say(action.sched, action.text);
      case "start-runners":
        return this.#ports.runners?.start((why) => this.#driver.do((core, now_ms) => core.runnersExited(why, now_ms)));
      case "kill-runners":
        return this.#ports.runners?.kill(action.pid);
      case "drop-link":
        return links.end(action.link);
      case "log-events":
        return log.setMask(action.mask);
      case "formula":
        return files.formula(action.text);
      case "send-mail":
        return mail.send(action.mail);
      case "read-history":
        return this.#driver.history.read(action.token, action.ids);
      case "page-history":
        return this.#driver.history.page(action.token, action.walk);
      case "go-on":
        return this.#driver.history.slices(action.token);
      case "purge-history":
        return this.#driver.history.purge(action.before_s);
      case "run-hook":
        return this.#runHook(action);
      case "resolve-host":
        return this.#ports.resolve(action.host, (name) =>
          this.#driver.do((core, now_ms) => core.hostResolved(action.token, action.host, name, now_ms)),
        );
      case "backup":
        return store.backup(action.file, (result) => {
          if (result.ok) this.#ports.clients.answer([{ kind: "ok", token: action.token }]);
          else this.#driver.refuse(action.token, `${pbseText(PBSE.SYSTEM) ?? ""}${result.error.message}`);
        });
      case "ask-authority":
        return this.#ports.identity.ask(action.ask, (result) => {
          if (result.ok) this.#ports.clients.answer([{ kind: "ok", token: action.token, value: result.value }]);
          else this.#driver.refuse(action.token, result.error.message);
        });
      case "shutdown":
        return this.#driver.end(action.scheds);
      case "order-other":
        return this.#order(action.order, action.order === "idle" ? "secondary" : null, action.token, () =>
          this.#driver.do((core, now_ms) => core.otherOrdered(action.token, action.how, now_ms)),
        );
      case "stop-secondary":
        return this.#order("stop", "secondary", action.token, () => this.#ports.clients.answer([{ kind: "ok", token: action.token }]));
      default: {
        const unreachable: never = action;
        return unreachable;
      }
    }
  }

  /** Gives the other server an order. If that fails, the request is refused. */
  #order(order: "stop" | "idle", role: "secondary" | null, token: number, then: () => void): void {
    const done = (fault: Error | null): void => {
      if (fault === null) return then();
      const text = `the other server cannot be told to ${order === "idle" ? "stay idle" : "end"}: ${fault.message}`;
      this.#ports.log.note(LOG_EVENT.ERROR, text);
      this.#driver.refuse(token, `${pbseText(PBSE.SYSTEM) ?? ""}${text}`);
    };
    const { lease } = this.#ports.store;
    if (lease === undefined) done(new Error("the complex has one server"));
    else lease.order(order, role, done);
  }

  /** Runs a hook. If the core is replaced while the hook runs, the new core does not get the outcome. */
  #runHook({ run, hook }: Extract<ShellAction, { kind: "run-hook" }>): void {
    const asked = this.#driver.core();
    this.#ports.hooks.run(hook, (outcome) => {
      if (this.#driver.core() === asked) this.#driver.do((core, now_ms) => core.hookEnded(run, outcome, now_ms));
    });
  }
}
