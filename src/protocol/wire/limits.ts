// Every limit of the protocol by name. Characters are UTF-16 units; a frame has at most three times as many bytes.

export type Limits = {
  /** one frame from a client, or from a daemon that has not been welcomed */
  readonly request_frame_chars_max: number;
  /** one frame between daemons, or from the server to a client */
  readonly daemon_frame_chars_max: number;
  /**
   * incomplete frames and unserved complete frames of all connections of one user together; beyond this the connections are not
   * read (server-link.ts L3)
   */
  readonly user_pending_chars_max: number;
  /** time in which a frame must be complete */
  readonly frame_ms_max: number;
  /** connections in total; `reserved_connections` of them are only for root, the user who owns the complex, and welcomed daemons */
  readonly connections_max: number;
  readonly reserved_connections: number;
  /** connections of one user */
  readonly user_connections_max: number;
  /** requests of one connection without a reply; beyond this the connection is not read */
  readonly open_requests_max: number;
  /** frames a second of one connection, averaged over a second; beyond this reading pauses */
  readonly frames_per_s_max: number;
  /** text of one user's requests that are served but not answered; beyond this a connection with such requests is not served */
  readonly user_open_chars_max: number;
  /** replies that a client has not read, and those of all connections of a user; beyond this such a connection is not served */
  readonly unread_reply_chars_max: number;
  readonly user_unread_chars_max: number;
  /** text that waits for a slow reader (a client, a daemon); beyond this the connection is ended */
  readonly client_queue_chars_max: number;
  readonly daemon_queue_chars_max: number;
  /** a reader that takes nothing for this long while text waits for it counts as gone */
  readonly stalled_reader_ms: number;
  /** the same for a daemon, which may be in a long cycle */
  readonly stalled_daemon_ms: number;
  /** bytes written to the socket buffer before text waits in the queue */
  readonly write_ahead_bytes: number;
  /** jobs in one queue-jobs request */
  readonly jobs_per_frame_max: number;
  readonly script_chars_max: number;
  /** contents of a hook in base64, line breaks included */
  readonly hook_chars_max: number;
  readonly attr_value_chars_max: number;
  readonly attrs_max: number;
  readonly ids_max: number;
  /**
   * jobs that a command names in one status request; for more jobs it sends several requests (max_status_jobs of the server is
   * at least this large)
   */
  readonly job_ids_max: number;
  /** object names and job ids in requests (the server checks the real limits of each object) */
  readonly name_chars_max: number;
};

const MI = 1024 * 1024;

export const LIMITS: Limits = Object.freeze({
  request_frame_chars_max: 16 * MI,
  daemon_frame_chars_max: 400 * MI,
  user_pending_chars_max: 64 * MI,
  frame_ms_max: 30_000,
  connections_max: 4096,
  reserved_connections: 128,
  user_connections_max: 1024,
  open_requests_max: 4096,
  frames_per_s_max: 20_000,
  user_open_chars_max: 64 * MI,
  unread_reply_chars_max: 4 * MI,
  user_unread_chars_max: 64 * MI,
  client_queue_chars_max: 512 * MI,
  daemon_queue_chars_max: 1024 * MI,
  stalled_reader_ms: 60_000,
  stalled_daemon_ms: 600_000,
  write_ahead_bytes: 1 * MI,
  jobs_per_frame_max: 1000,
  script_chars_max: 4 * MI,
  hook_chars_max: 12 * MI,
  attr_value_chars_max: 4 * MI,
  attrs_max: 5000,
  ids_max: 100_000,
  job_ids_max: 1000,
  name_chars_max: 1024,
});
