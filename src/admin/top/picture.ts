// The data of `partita top`: the server's schedulers, and the view of each scheduler that answers. It is read through the
// server, as any user may do.

import { pbseText } from "#model/pbse.ts";
import type { StatusItem } from "#protocol/messages.ts";
import type { SchedView, UnservedView } from "#protocol/sched-view.ts";
import { connectWatched, type LinkWatch } from "#protocol/watched-link.ts";
import type { Conf } from "#support/conf.ts";

export type SchedPicture = {
  readonly name: string;
  readonly state: string;
  readonly scheduling: boolean;
  readonly partition: string;
  readonly comment: string;
  /** null: the scheduler is down or did not answer */
  readonly view: SchedView | null;
  /** the reason why there is no view; "" if there is one, or if the scheduler is down */
  readonly fault: string;
};
export type TopPicture = {
  readonly server: string;
  readonly at_s: number;
  readonly scheds: readonly SchedPicture[];
  /** partitions with jobs that no scheduler looks at */
  readonly unserved: readonly UnservedView[];
};

/** A server that is silent for this long is not awaited; the picture says so. */
export const PICTURE_WATCH: Pick<LinkWatch, "patience" | "silent"> = { patience: { notice_s: 0, limit_s: 10 }, silent: () => undefined };

/** Rejects with ServerUnreachable. */
export async function takePicture(conf: Conf): Promise<TopPicture> {
  const link = await connectWatched(conf, PICTURE_WATCH);
  try {
    const items: StatusItem[] = [];
    await link.request({ kind: "status", object: "sched", ids: [] }, { onPart: (part) => items.push(...(part as readonly StatusItem[])) });
    const scheds = items.flatMap((item) => ("attrs" in item ? [item] : []));
    const pictures = scheds.map(async ({ id, attrs }): Promise<SchedPicture> => {
      const text = (name: string): string => {
        const value = attrs[name];
        return typeof value === "string" ? value : "";
      };
      const state = text("state");
      const plain = { name: id, state, scheduling: text("scheduling") === "True", partition: text("partition"), comment: text("comment") };
      if (state === "down") return { ...plain, view: null, fault: "" };
      const reply = await link.request({ kind: "view-sched", sched: id });
      if (reply.ok) return { ...plain, view: reply.value as SchedView, fault: "" };
      return { ...plain, view: null, fault: reply.text ?? pbseText(reply.code) ?? `error ${reply.code}` };
    });
    const reply = await link.request({ kind: "view-unserved" });
    const unserved = reply.ok ? (reply.value as readonly UnservedView[]) : [];
    return { server: conf.server, at_s: Math.floor(Date.now() / 1000), scheds: await Promise.all(pictures), unserved };
  } finally {
    link.close();
  }
}
