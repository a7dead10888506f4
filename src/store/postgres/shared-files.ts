// Files that two servers of one complex share: rows of the table `files`. Their texts are sealed before they come here
// (src/server/shell/shared-files.ts).

import type { Reader } from "../sql-history.ts";

type FileRow = { readonly name: string; readonly data: string };

export async function readFiles(reader: Reader): Promise<ReadonlyMap<string, string>> {
  const rows = await reader.all<FileRow>("SELECT name, data FROM files");
  return new Map(rows.map(({ name, data }) => [name, data]));
}

/** Writes files; null: removes the file. */
export async function writeFiles(writer: Reader, files: ReadonlyMap<string, string | null>): Promise<void> {
  for (const [name, data] of files) {
    if (data === null) await writer.all("DELETE FROM files WHERE name = ?", name);
    else await writer.all("INSERT INTO files (name, data) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET data = excluded.data", name, data);
  }
}
