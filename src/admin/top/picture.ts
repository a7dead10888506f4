// The data of `partita top`: the schedulers of the server, and what each of them shows of its work. All of it is requested
// from the server, as any user may do.

import { pbseText } from "#model/pbse.ts";
import { collectInto } from "#protocol/client.ts";
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
  /** what the scheduler shows; null: it is down, or has not answered */
  readonly view: SchedView | null;
  /** the reason why there is no view; "": there is one, or the scheduler is down */
  readonly fault: string;
};
export type TopPicture = {
  readonly server: string;
  readonly at_s: number;
  readonly scheds: readonly SchedPicture[];
  /** partitions with jobs that no scheduler serves */
  readonly unserved: readonly UnservedView[];
};

/** How long the server may take to answer. After that, the picture says that it does not answer. */
export const PICTURE_WATCH: Pick<LinkWatch, "patience" | "silent"> = { patience: { notice_s: 0, limit_s: 10 }, silent: () => undefined };

/** Requests the present data. Rejects with ServerUnreachable. */
export async function takePicture(conf: Conf): Promise<TopPicture> {
  const link = await connectWatched(conf, PICTURE_WATCH);
  try {
    const items: StatusItem[] = [];
    await link.request({ kind: "status", object: "sched", ids: [] }, { onPart: collectInto(items) });
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
