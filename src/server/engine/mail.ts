// Mail about jobs and reservations (qsub -m, -M): who gets mail about an event, and its text. The shell gives the mail to
// the server's mailer.

import type { Attrs, Job, Resv } from "../state/state.ts";

export type Mail = {
  readonly mailer: string;
  readonly from: string;
  readonly to: readonly string[];
  /** whether the mail goes to the owner, because there are no Mail_Users */
  readonly to_owner: boolean;
  readonly subject: string;
  readonly body: string;
};

const FIRST_LINE: { readonly [point: string]: string } = { a: "Aborted by PBS Server", b: "Begun execution", e: "Execution terminated" };

/** Mail point for trouble with a job's files: the owner gets the mail whatever -m says, except with n. */
export const FILE_TROUBLE = "f";

/** Whether anybody wants mail about the event (-m; see mailFor). */
export function wantsMail(job: Job, point: string): boolean {
  const stated = job.attrs["Mail_Points"];
  const wanted = typeof stated === "string" ? stated : "a";
  if (point === FILE_TROUBLE ? wanted.includes("n") : !wanted.includes(point)) return false;
  return job.attrs["array_id"] === undefined || wanted.includes("j");
}

/** The mail about an event of a job; null: no mail is wanted. point: a aborted, b begun, e ended, FILE_TROUBLE. Mail about subjobs is wanted only with j. */
export function mailFor(server: Attrs, job: Job, point: string, text: string): Mail | null {
  if (!wantsMail(job, point)) return null;
  const first = FIRST_LINE[point];
  const lines = [
    `PBS Job Id: ${job.id}`,
    `Job Name:   ${job.attrs.Job_Name}`,
    ...(first === undefined || text.startsWith(first) ? [] : [first]),
    ...(text === "" ? [] : [text]),
    "",
  ];
  return letter(server, job.attrs["Mail_Users"], job.attrs.Job_Owner, `PBS JOB ${job.id}`, lines);
}

/** The mail about an event of a reservation; null: no mail is wanted. point: a aborted, b begun, c confirmed, e ended. */
export function mailForResv(server: Attrs, { id, attrs }: Resv, point: string, text: string): Mail | null {
  const wanted = attrs["Mail_Points"];
  if (!(typeof wanted === "string" ? wanted : "ac").includes(point)) return null;
  const lines = [`PBS Reservation Id: ${id}`, `Reservation Name:   ${attrs.Reserve_Name}`, text, ""];
  return letter(server, attrs["Mail_Users"], attrs.Reserve_Owner, `PBS RESERVATION ${id}`, lines);
}

function letter(server: Attrs, users: unknown, owner: string, subject: string, lines: readonly string[]): Mail {
  const named = Array.isArray(users) && users.length > 0;
  const to = named ? (users as string[]) : [owner];
  return {
    mailer: typeof server["mailer"] === "string" ? server["mailer"] : "/usr/sbin/sendmail",
    from: typeof server["mail_from"] === "string" ? server["mail_from"] : "adm",
    to: to.filter((address) => /^[^\s,;<>|&`$()-][^\s,;<>|&`$()]*$/.test(address)),
    to_owner: !named,
    subject,
    body: lines.join("\n"),
  };
}
