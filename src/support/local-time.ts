// Dates in the local time of the machine (TZ), as PBS writes them in logs, in accounting files and in the names of these
// files. The text of a second is computed once.

export type Stamper = {
  /** writes epoch milliseconds as `MM/DD/YYYY HH:MM:SS`; with highres as `MM/DD/YYYY HH:MM:SS.uuuuuu` */
  stamp(now_ms: number): string;
  /** writes epoch milliseconds as `YYYYMMDD` */
  day(now_ms: number): string;
};

/** Returns a formatter for one log. It remembers the text of the last second. highres: PBS_LOG_HIGHRES_TIMESTAMP. */
export function localStamper(highres = false): Stamper {
  let second = Number.NaN;
  let stamp = "";
  let day = "";
  const format = (now_ms: number): void => {
    const now_s = Math.floor(now_ms / 1000);
    if (now_s === second) return;
    second = now_s;
    const date = new Date(now_s * 1000);
    const [year, month, dom] = [String(date.getFullYear()).padStart(4, "0"), two(date.getMonth() + 1), two(date.getDate())];
    stamp = `${month}/${dom}/${year} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
    day = `${year}${month}${dom}`;
  };
  return {
    stamp(now_ms) {
      format(now_ms);
      if (!highres) return stamp;
      const micros = Math.min(Math.round((now_ms - second * 1000) * 1000), 999_999);
      return `${stamp}.${String(micros).padStart(6, "0")}`;
    },
    day(now_ms) {
      format(now_ms);
      return day;
    },
  };
}

const two = (value: number): string => (value < 10 ? `0${value}` : String(value));
