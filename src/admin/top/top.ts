// `partita top`: shows the live view if the output is a terminal, otherwise one snapshot as text or JSON.

import { ServerUnreachable } from "#protocol/client.ts";
import type { Conf } from "#support/conf.ts";
import { drawAlways } from "#support/live-screen.ts";
import { AdminError } from "../complex/complex-home.ts";
import { askExplanation } from "../explain/explain.ts";
import { explanationText } from "../explain/explanation-text.ts";
import { PICTURE_WATCH, type TopPicture, takePicture } from "./picture.ts";
import { snapshotText } from "./screen.ts";

export type TopOptions = { readonly json: boolean; readonly seconds: number };

export async function top(conf: Conf, { json, seconds }: TopOptions, out: NodeJS.WriteStream): Promise<void> {
  if (!(seconds > 0)) throw new AdminError("--seconds: a positive number");
  if (json) out.write(`${JSON.stringify(await takePicture(conf), null, 2)}\n`);
  else if (!out.isTTY || !process.stdin.isTTY) out.write(snapshotText(await takePicture(conf)));
  else {
    drawAlways(process.env);
    const { runTop } = await import("./app.tsx");
    await runTop({
      refresh_ms: Math.max(0.2, seconds) * 1000,
      picture: () => orNull(takePicture(conf)),
      explain: (job) => askExplanation(conf, job, PICTURE_WATCH).then(explanationText, (error: Error) => `${job}: ${error.message}\n`),
    });
  }
}

async function orNull(picture: Promise<TopPicture>): Promise<TopPicture | null> {
  try {
    return await picture;
  } catch (error) {
    if (error instanceof ServerUnreachable || error instanceof AdminError) return null;
    throw error;
  }
}
