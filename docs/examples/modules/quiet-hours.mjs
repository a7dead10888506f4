// A policy module of a site: jobs of some projects do not start during some hours of the day.
//
//   modules: reservations limits time resources backfill quiet-hours.mjs
//   quiet-hours.projects: render,backup
//   quiet-hours.from: 8
//   quiet-hours.until: 18
//
// Jobs that run already are left alone, and so is qrun. The hours are those of the scheduler's local time.

/** Is this hour (0 to 23) within from..until, which may lie around midnight? */
function isWithin(hour, from, until) {
  return from <= until ? hour >= from && hour < until : hour >= from || hour < until;
}

function hourOption(options, key, fallback) {
  const hour = Number(options.get(key) ?? fallback);
  if (!Number.isInteger(hour) || hour < 0 || hour > 24) throw new Error(`${key} must be a whole hour from 0 to 24`);
  return hour;
}

export default function quietHours({ options }) {
  const projects = new Set((options.get("projects") ?? "").split(",").filter((name) => name !== ""));
  const from = hourOption(options, "from", 8);
  const until = hourOption(options, "until", 18);

  return {
    kind: "policy",
    options: [
      { name: "projects", default: "", help: "names with commas between them" },
      { name: "from", default: "8", help: "first quiet hour" },
      { name: "until", default: "18", help: "first hour that is not quiet" },
    ],

    // The answer depends on the project: jobs of different projects must not be taken for equal.
    classKey: (job) => (projects.has(job.project) ? job.project : ""),

    checks: [
      {
        stage: "time",
        check({ now_s, book, qrun }, { entry }) {
          if (qrun || !projects.has(entry.job.project)) return null;
          const hour = Math.floor(book.local.civil(now_s).second_of_day / 3600);
          if (!isWithin(hour, from, until)) return null;
          return { code: `Project ${entry.job.project} does not run from ${from} to ${until} o'clock` };
        },
      },
    ],
  };
}
