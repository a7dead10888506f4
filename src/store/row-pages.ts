// Reads all rows of jobs page by page. A query returns a whole page of jobs as one result row, because every single value
// that a database returns costs more than its text. While this thread makes records from one page, the database reads the
// next page.

import { nth } from "#support/assert.ts";
import { alikeReader } from "./alike-rows.ts";
import { damagedRow, parseData } from "./row-text.ts";
import { type Data, type JobRow, type Keep, type Loaded, OBJECT_TABLES } from "./store.ts";

const PAGE_ROWS = 2000;
/** The longest row that is read as a part of a page. Longer rows are read one by one, because a page must fit into a string. */
export const PAGED_BYTES_MAX = 16 * 1024;
/** The code of the character between the texts of a page. JSON never contains it. */
export const SEPARATOR_CODE = 0x1e;
const SEPARATOR = String.fromCharCode(SEPARATOR_CODE);

/** The tables that are read in pages. */
export type PagedTable = "jobs" | "runs";

/**
 * A page of rows. ids, seqs: JSON lists. texts: the texts of the rows; "" for a row that is too long for a page. last: the
 * key after which the next page begins; null: this page is empty.
 */
export type Page = { readonly ids: string; readonly seqs: string; readonly texts: string | null; readonly last: string | number | null };

/** Reads pages of one table. store: its name in messages. */
export type PageSource = {
  readonly store: string;
  readonly table: PagedTable;
  /** reads rows in the order of their keys. after: the key before the first of them; null: from the beginning */
  page(after: string | number | null, rows: number): Promise<Page | undefined>;
  /** the text of a row that is too long for a page */
  long(id: string): Promise<string>;
};

/** Reads all jobs with their second rows, in the order of seq. first: the first page of jobs, if its reading was begun already. */
export async function readJobs(
  source: (table: PagedTable) => PageSource,
  keep: Keep,
  first?: Promise<Page | undefined>,
): Promise<Loaded["jobs"]> {
  const runs = new Map<string, Data>();
  for await (const rows of pages(source("runs"), keep)) for (const { id, data } of rows) runs.set(id, data);
  const jobs: (JobRow & { run?: Data })[] = [];
  for await (const rows of pages(source("jobs"), keep, first))
    for (const row of rows) {
      const run = runs.get(row.id);
      jobs.push(run === undefined ? row : { ...row, run });
    }
  return jobs.sort((a, b) => a.seq - b.seq);
}

/** Whether nothing was ever committed to a store with these rows. */
export const isFresh = ({ objects, jobs, counters }: Omit<Loaded, "fresh">): boolean =>
  jobs.length === 0 && Object.keys(counters).length === 0 && OBJECT_TABLES.every((table) => objects[table].length === 0);

async function* pages(source: PageSource, keep: Keep, first = source.page(null, PAGE_ROWS)): AsyncGenerator<readonly JobRow[], void, void> {
  const read = alikeReader(keep);
  let next = first;
  try {
    for (let page = await next; page !== undefined && page.last !== null; page = await next) {
      next = source.page(page.last, PAGE_ROWS);
      // The next page may fail while this page waits for a long row. The fault is reported when the next page is used.
      next.catch(() => undefined);
      yield await rowsOf(source, page, read);
    }
  } finally {
    await next.catch(() => undefined);
  }
}

async function rowsOf(source: PageSource, page: Page, read: (text: string) => Data): Promise<JobRow[]> {
  const { store, table } = source;
  const ids = JSON.parse(page.ids) as readonly string[];
  const seqs = JSON.parse(page.seqs) as readonly number[];
  const texts = (page.texts ?? "").split(SEPARATOR);
  if (texts.length !== ids.length) throw damagedRow(store, table, `one of ${ids[0]} to ${ids.at(-1)}`);
  const rows: JobRow[] = [];
  for (const [at, id] of ids.entries()) {
    const text = texts[at] || (await source.long(id));
    rows.push({ id, seq: nth(seqs, at), data: parseData(store, table, id, text, read) });
  }
  return rows;
}
