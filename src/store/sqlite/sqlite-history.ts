// The history in SQLite (../sql-history.ts).

import type { HistoryDialect } from "../sql-history.ts";

export const SQLITE_HISTORY: HistoryDialect = {
  texts: "SELECT value FROM json_each(?)",
  numbers: "SELECT value FROM json_each(?)",
  uses_resource: "EXISTS (SELECT 1 FROM json_each(history.data, '$.Resource_List') AS used WHERE used.key = ?)",
};
