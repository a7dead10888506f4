// Files left by rows are removed only after all rows are measured. ext4 without a journal passes over the inodes of recently
// removed files whenever a file is created. The removal of one row's 2,000 output files would therefore slow down the next row
// (2 ms a job).

import { rmSync } from "node:fs";

const places: string[] = [];

/** The directory is removed when this process ends. */
export function removeAtEnd(place: string): void {
  if (places.length === 0) process.once("exit", () => places.forEach((each) => void rmSync(each, { recursive: true, force: true })));
  places.push(place);
}
