// Dates as PBS writes them in logs, accounting files and their names: in the local time of the machine (TZ). Each second is
// formatted once.

export type Stamper = {
  /** `MM/DD/YYYY HH:MM:SS` of epoch milliseconds; with `.uuuuuu` where highres */
  stamp(now_ms: number): string;
  /** `YYYYMMDD` of epoch milliseconds */
  day(now_ms: number): string;
};

/** One cached formatter for a log: consecutive records of one second share their text. highres: PBS_LOG_HIGHRES_TIMESTAMP. */
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
