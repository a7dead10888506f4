// Requests that once blocked the server because their work was not bounded. Each is sent over connections that never read a
// reply, while another connection asks for the server's status. Used by freeze.test.ts and by `npm run bench -- --only freeze`.

import { readFileSync } from "node:fs";
import { createConnection, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connectSocket, type ServerConnection } from "#protocol/client.ts";
import type { AttrValueText, Request } from "#protocol/messages.ts";
import { encodeFrame } from "#protocol/wire/frame.ts";

/** Sizes: connections, requests on each, entries in a list, jobs that exist before. */
export type Size = { readonly connections: number; readonly requests: number; readonly entries: number; readonly jobs: number };

/** Waiting jobs and a waiting array. */
export type Known = { readonly ids: readonly string[]; readonly array: string };

export type Freezing = {
  readonly name: string;
  /** the requests of one connection */
  requests(size: Size, known: Known): Iterable<Request>;
};

const submission = (...attrs: readonly AttrValueText[]): Request => ({ kind: "queue-job", destination: "", attrs, script: "true\n" });
const held: AttrValueText = { name: "Hold_Types", value: "u" };
const select = (value: string): AttrValueText => ({ name: "Resource_List", resource: "select", value });
const repeat = function* (count: number, make: (at: number) => Request): Generator<Request> {
  for (let at = 0; at < count; at++) yield make(at);
};
/** Requests with much text: fewer of them. */
const few = ({ requests }: Size): number => Math.max(2, Math.round(requests / 50));

export const FREEZING: readonly Freezing[] = [
  {
    name: "dependencies on 20,000 jobs that do not exist",
    requests: (size) => {
      const value = `afterok:${Array.from({ length: size.entries }, (_, at) => 5_000_000 + at).join(":")}`;
      return repeat(few(size), () => submission(held, { name: "depend", value }));
    },
  },
  {
    name: "dependencies on a thousand jobs that wait",
    requests: (size, { ids }) =>
      repeat(few(size), () => submission(held, { name: "depend", value: `afterany:${ids.slice(0, 1000).join(":")}` })),
  },
  {
    name: "all finished jobs listed, replies never read",
    requests: (size) => repeat(size.requests, () => ({ kind: "status", object: "job", ids: [], history: "with" })),
  },
  {
    name: "one array named over and over, with its subjobs",
    requests: (size, { array }) =>
      repeat(few(size), () => ({ kind: "status", object: "job", ids: Array<string>(1000).fill(array), subjobs: true })),
  },
  {
    name: "jobs selected by very many users",
    requests: (size) => {
      const value = Array.from({ length: size.entries * 5 }, (_, at) => `u${at}@h${at}`).join(",");
      return repeat(few(size), () => ({ kind: "select-jobs", criteria: [{ name: "User_List", op: "ne", value }] }));
    },
  },
  {
    name: "reservations by a rule of very many days",
    requests: (size) => {
      const start = Math.floor(Date.now() / 1000) + 3600;
      const attrs = [
        { name: "reserve_start", value: String(start) },
        { name: "reserve_end", value: String(start + 60) },
        { name: "reserve_timezone", value: "Europe/Berlin" },
        {
          name: "reserve_rrule",
          value: `FREQ=DAILY;COUNT=5000;BYMONTH=2;BYMONTHDAY=30;BYDAY=${Array(size.entries).fill("1MO").join(",")}`,
        },
      ];
      return repeat(few(size), () => ({ kind: "submit-resv", attrs }));
    },
  },
  {
    name: "selects of very many chunks",
    requests: (size) => repeat(few(size), (at) => submission(held, select(`${at + 1}:ncpus=1${"+1:ncpus=1".repeat(size.entries * 5)}`))),
  },
  {
    name: "frames that are wrong in every item",
    requests: (size) => {
      const wrong = { kind: "status", object: "job", ids: Array<number>(size.entries * 50).fill(1) };
      return repeat(few(size), () => wrong as unknown as Request);
    },
  },
  {
    name: "questions to the scheduler why a job waits",
    requests: (size, { ids }) => repeat(size.requests, (at) => ({ kind: "explain-job", job: ids[at % ids.length] as string })),
  },
  {
    name: "jobs with large environments of their own",
    requests: (size) =>
      repeat(few(size), (at) => submission(held, { name: "Variable_List", value: `A=${at}${"x".repeat(size.entries * 100)}` })),
  },
];

/** Creates the objects of the requests: waiting jobs, finished jobs and an array. uid: their owner; absent: this user. */
export async function prepare(path: string, size: Size, uid?: number): Promise<Known> {
  const client = await connectedAs(uid, () => connectSocket(path));
  const must = async (request: Request): Promise<unknown> => {
    const reply = await client.request(request);
    if (!reply.ok) throw new Error(`${request.kind}: ${reply.code} ${reply.text}`);
    return reply.value;
  };
  const set = (name: string, value: string) =>
    must({ kind: "manager", verb: "set", object: "server", name: "", attrs: [{ name, op: "=", value }] });
  await set("job_history_enable", "True");
  await set("scheduling", "False");
  const job = { destination: "", attrs: [held, select("1:ncpus=1")], script: "true\n" };
  const ids: string[] = [];
  const submit = async (count: number): Promise<string[]> => {
    const made: string[] = [];
    while (made.length < count) {
      const jobs = Array(Math.min(1000, count - made.length)).fill(job);
      const { results } = (await must({ kind: "queue-jobs", jobs })) as { results: { id: string }[] };
      made.push(...results.map(({ id }) => id));
    }
    return made;
  };
  // Deleted jobs are in the history.
  for (let left = await submit(size.jobs); left.length > 0; left = left.slice(200))
    await Promise.all(left.slice(0, 200).map((id) => must({ kind: "delete-job", job: id })));
  ids.push(...(await submit(size.jobs)));
  const { id: array } = (await must(submission(held, { name: "array_indices_submitted", value: "1-9999" }))) as { id: string };
  client.close();
  return { ids, array };
}

/**
 * slowest_cpu_ms: the most processor time that the server took between a question and its answer. A busy machine does not
 * lengthen it.
 */
export type Outcome = { readonly slowest_ms: number; readonly slowest_cpu_ms: number; readonly answers: number; readonly peak_kB: number };

/**
 * Sends the requests for that time, while a new connection repeatedly asks for the server's status. uid: user of the sending
 * connections, which needs root; absent: one user sends and asks.
 */
export async function attack(
  path: string,
  pid: number,
  freezing: Freezing,
  size: Size,
  known: Known,
  lasting_ms: number,
  uid?: number,
): Promise<Outcome> {
  const sockets = await connectedAs(uid, () => Promise.all(Array.from({ length: size.connections }, () => opened(path))));
  for (const socket of sockets) void pour(socket, freezing.requests(size, known));
  const end_ms = performance.now() + lasting_ms;
  let [slowest_ms, slowest_cpu_ms, answers, peak_kB] = [0, 0, 0, residentKB(pid)];
  const probe = async (): Promise<void> => {
    const [begin_ms, cpu_ms] = [performance.now(), processorMs(pid)];
    await asked(path);
    slowest_ms = Math.max(slowest_ms, performance.now() - begin_ms);
    slowest_cpu_ms = Math.max(slowest_cpu_ms, processorMs(pid) - cpu_ms);
    peak_kB = Math.max(peak_kB, residentKB(pid));
    answers++;
  };
  // Enough answers to see the server at work, however slow the machine is.
  while (performance.now() < end_ms || answers < ANSWERS_MIN) {
    await probe();
    await sleep(50);
  }
  for (const socket of sockets) socket.destroy();
  await probe();
  return { slowest_ms, slowest_cpu_ms, answers, peak_kB };
}

const ANSWERS_MIN = 5;

async function asked(path: string): Promise<void> {
  const client: ServerConnection = await connectSocket(path);
  const reply = await client.request({ kind: "status", object: "server", ids: [] });
  client.close();
  if (!reply.ok) throw new Error(`status of the server: ${reply.code} ${reply.text}`);
}

/** Connects as that user: the kernel takes the credentials of a connection at connect(2). Absent: as this user. */
async function connectedAs<T>(uid: number | undefined, connect: () => Promise<T>): Promise<T> {
  if (uid === undefined) return connect();
  process.seteuid?.(uid);
  try {
    return await connect();
  } finally {
    process.seteuid?.(0);
  }
}

const opened = (path: string): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = createConnection(path, () => resolve(socket));
    socket.once("error", reject);
  });

/** Writes while the server reads; never reads. */
async function pour(socket: Socket, requests: Iterable<Request>): Promise<void> {
  socket.on("error", () => undefined);
  socket.pause();
  let id = 1;
  for (const request of requests) {
    if (socket.destroyed) return;
    if (socket.write(encodeFrame("request", { id: id++, ...request }))) continue;
    await new Promise<void>((resolve) => {
      const goOn = (): void => {
        socket.off("drain", goOn).off("close", goOn);
        resolve();
      };
      socket.on("drain", goOn).on("close", goOn);
    });
  }
}

/** Processor time of all threads of a process so far; the kernel counts it in hundredths of a second. */
const processorMs = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
};

/** Resident memory after the server has collected its garbage, which it does on SIGUSR2. */
export async function residentAfterCollectionKB(pid: number): Promise<number> {
  for (let round = 0; round < 3; round++) {
    process.kill(pid, "SIGUSR2");
    await sleep(1000);
  }
  return residentKB(pid);
}

export const residentKB = (pid: number): number => Number(/^VmRSS:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
