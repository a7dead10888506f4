// Asks a service over HTTP: with a time limit, a bounded answer, and no redirects. Also over a unix socket, given as `unix:/path`.
//
// W1. A request ends after timeout_ms, whatever the service does. W2. An answer has at most ANSWER_MAX bytes, or answer_max. W3. No secret is in an error.

import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { codeOf, messageOf } from "#support/caught.ts";
import { BackendError, cleanText } from "../contract/fault.ts";

const ANSWER_MAX = 64 * 1024 * 1024;

export type HttpAnswer = { readonly status: number; readonly header: (name: string) => string | undefined; readonly text: string };

export type HttpQuestion = {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** http:, https:, or the path for a service on a unix socket */
  readonly url: string;
  /** the path of a unix socket */
  readonly socket?: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** sent as JSON */
  readonly body?: unknown;
  readonly timeout_ms: number;
  /** the largest answer in bytes, if not ANSWER_MAX */
  readonly answer_max?: number;
  /** whether the path of the URL is a secret, which errors must not tell */
  readonly isPathSecret?: boolean;
  /** certificates of authorities in PEM, in place of the system's */
  readonly ca?: string | undefined;
};

export async function ask(question: HttpQuestion): Promise<HttpAnswer> {
  const { method, url, socket, timeout_ms, answer_max = ANSWER_MAX, ca } = question;
  const body = question.body === undefined ? undefined : JSON.stringify(question.body);
  const headers = {
    accept: "application/json",
    ...(body === undefined ? {} : { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) }),
    ...question.headers,
  };
  const secure = socket === undefined && new URL(url).protocol === "https:";
  // node:https loads TLS, which a controller without a backend over https does not need.
  const begin = secure ? (await import("node:https")).request : httpRequest;
  const options: RequestOptions = {
    method,
    headers,
    agent: false,
    ...(socket === undefined ? {} : { socketPath: socket }),
    ...(ca === undefined ? {} : { ca }),
  };
  return new Promise((resolve, reject) => {
    const failed = (text: string): void =>
      reject(new BackendError({ kind: "transient", text: `${method} ${placeOf(question)}: ${text}` }, { uncertain: method === "POST" }));
    const sent = begin(socket === undefined ? url : `http://localhost${url}`, options);
    const timer = setTimeout(() => {
      failed(`no answer within ${timeout_ms / 1000} s`);
      sent.destroy();
    }, timeout_ms);
    sent.once("response", (response) => {
      collect(response, answer_max).then(
        (text) => resolve({ status: response.statusCode ?? 0, header: (name) => headerOf(response, name), text }),
        (error: unknown) => {
          // The request may have no error of its own when only its answer was broken off.
          failed(cleanText(messageOf(error)));
          sent.destroy();
        },
      );
    });
    sent.once("close", () => clearTimeout(timer));
    sent.on("error", (error) => failed(cleanText(error.message || codeOf(error) || "failed")));
    sent.end(body);
  });
}

async function collect(response: IncomingMessage, bytes_max: number): Promise<string> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of response) {
    const bytes: Buffer = Buffer.from(part);
    length += bytes.length;
    if (length > bytes_max) throw new Error(`an answer of more than ${bytes_max} bytes`);
    parts.push(bytes);
  }
  return Buffer.concat(parts).toString("utf8");
}

function headerOf(response: IncomingMessage, name: string): string | undefined {
  const value = response.headers[name.toLowerCase()];
  return Array.isArray(value) ? value[0] : value;
}

/** Where a request went, without query and user. */
function placeOf({ url, socket, isPathSecret = false }: HttpQuestion): string {
  if (socket !== undefined) return `${socket}${url.replace(/\?.*/, "")}`;
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${isPathSecret ? "/..." : pathname}`;
}
