// Every limit of the protocol by name. Characters are UTF-16 units; a frame has at most three times as many bytes.

export type Limits = {
  /** longest frame of a client, or of a daemon that has not been welcomed */
  readonly request_frame_chars_max: number;
  /** longest frame between daemons, or from the server to a client */
  readonly daemon_frame_chars_max: number;
  /** longest frame of a mom on another host to the server */
  readonly far_mom_frame_chars_max: number;
  /** time that a daemon on another host has to close a link that the server has ended (server-link.ts L4) */
  readonly drop_ms_max: number;
  /**
   * length of all incomplete frames and of all complete frames not served yet, over all connections of one user; above this the
   * connections are not read (server-link.ts L3)
   */
  readonly user_pending_chars_max: number;
  /** time within which a frame must be complete */
  readonly frame_ms_max: number;
  /** largest number of connections in total; `reserved_connections` of them are only for root, the user who owns the complex, and welcomed daemons */
  readonly connections_max: number;
  readonly reserved_connections: number;
  /** largest number of connections of one user */
  readonly user_connections_max: number;
  /** unanswered requests of one connection; above this number the connection is not read */
  readonly open_requests_max: number;
  /**
   * frames per second of one user, and of all users of one other host, averaged over a second; above this rate, their connections
   * are not read for a while
   */
  readonly user_frames_per_s_max: number;
  readonly host_frames_per_s_max: number;
  /** length of one user's requests that have been served but not answered; above this, connections with such requests are not served */
  readonly user_open_chars_max: number;
  /**
   * length of the replies that a client has not read, for one connection and for all connections of a user; above this,
   * connections with such replies are not served
   */
  readonly unread_reply_chars_max: number;
  readonly user_unread_chars_max: number;
  /** the same for all users of one other host together: length of requests that are incomplete or wait, of requests that are not answered, and of unread replies */
  readonly host_pending_chars_max: number;
  readonly host_open_chars_max: number;
  readonly host_unread_chars_max: number;
  /** length of the text that waits for a slow peer (a client, a daemon); above this, the connection is ended */
  readonly client_queue_chars_max: number;
  readonly daemon_queue_chars_max: number;
  /** a client that takes nothing for this long while text waits for it counts as gone */
  readonly stalled_reader_ms: number;
  /** the same time for a daemon, which may be in a long cycle */
  readonly stalled_daemon_ms: number;
  /** TLS: time for a handshake; largest number of connections, over all peers, that have not shown a certificate yet (bounds/waiting-room.ts) */
  readonly handshake_ms_max: number;
  readonly unproved_connections_max: number;
  /** TLS: number of connections of one address that may end without proof within a time; further ones are closed before their handshake (unproved.ts) */
  readonly unproved_ends_max: number;
  readonly unproved_ends_ms: number;
  /**
   * TLS: users of other hosts. Largest number of connections, over all hosts, that have shown the certificate of their host
   * but have not proved their user; the time for that proof, and its length; largest numbers of connections of one host's
   * users and of all these users
   */
  readonly unproved_users_max: number;
  readonly proof_ms_max: number;
  readonly proof_chars_max: number;
  readonly host_users_connections_max: number;
  readonly hosts_users_connections_max: number;
  /** largest numbers of calls of libmunge at a time, and of calls that wait (proof/munge.ts) */
  readonly munge_calls_max: number;
  readonly munge_waiting_max: number;
  /** TLS: length of a host's question about certificates, and the time for question and answer (tls-listener.ts) */
  readonly question_chars_max: number;
  readonly question_ms_max: number;
  /** TLS: largest numbers of links of one host, and of its unanswered questions */
  readonly host_connections_max: number;
  readonly host_questions_max: number;
  /** TLS: time within which a server must have shown its certificate after a daemon has begun to connect */
  readonly dial_ms_max: number;
  /**
   * number of ports, from 15050 on, at which a scheduler on another host may listen if its sched_port is not set; the largest
   * number that PARTITA_SCHED_PORTS of pbs.conf can state (../sched-ports.ts)
   */
  readonly sched_ports: number;
  readonly sched_ports_max: number;
  /** time between attempts to reach a scheduler on another host */
  readonly sched_retry_ms: number;
  /** connections of one other host to a mom */
  readonly mom_connections_max: number;
  /**
   * length of the arguments and the environment of a task: the largest bound that a mom can have, and its default. Linux starts no
   * program with more text, and as a frame it is never longer than request_frame_chars_max
   */
  readonly task_text_chars_max: number;
  /** signals for a task that wait for the connection to its mom; further ones are dropped */
  readonly task_signals_max: number;
  /** interval at which a mom checks the certificates of its open links to other moms */
  readonly mom_review_ms: number;
  /**
   * files of jobs between hosts: time after which a connection over which nothing passes ends; time for its first frame; time that a peer has to close a
   * connection that was refused; largest numbers of connections, in total and of one host; intervals at which a host tells the server where it takes files, at
   * which it asks the server again what the runs with open connections may do, and at which it checks whether one of these is due
   */
  readonly files_silent_ms: number;
  readonly files_open_ms: number;
  readonly files_refused_ms: number;
  readonly files_connections_max: number;
  readonly files_host_connections_max: number;
  readonly files_offer_ms: number;
  readonly files_ask_ms: number;
  readonly files_look_ms: number;
  /** time that a daemon waits before it connects again, after the server refused its certificate or its version */
  readonly refused_retry_ms: number;
  /** largest number of vnodes that one mom reports */
  readonly mom_vnodes_max: number;
  /** longest interval at which a mom on another host may report */
  readonly status_interval_s_max: number;
  /** TLS: silence after which the kernel probes whether the other host is there */
  readonly keepalive_ms: number;
  /** number of bytes handed to the socket at a time; further text waits in the queue */
  readonly write_ahead_bytes: number;
  /** largest number of jobs in one queue-jobs request */
  readonly jobs_per_frame_max: number;
  readonly script_chars_max: number;
  /** length of a hook's contents in base64, line breaks included */
  readonly hook_chars_max: number;
  readonly attr_value_chars_max: number;
  readonly attrs_max: number;
  readonly ids_max: number;
  /**
   * largest number of jobs that a command names in one status request; for more jobs it sends several requests
   * (max_status_jobs of the server is at least this large)
   */
  readonly job_ids_max: number;
  /** length of object names and job ids in requests (the server then checks the real limit of each object) */
  readonly name_chars_max: number;
};

const MI = 1024 * 1024;

export const LIMITS: Limits = Object.freeze({
  request_frame_chars_max: 16 * MI,
  daemon_frame_chars_max: 400 * MI,
  far_mom_frame_chars_max: 32 * MI,
  drop_ms_max: 1000,
  user_pending_chars_max: 64 * MI,
  frame_ms_max: 30_000,
  connections_max: 4096,
  reserved_connections: 128,
  user_connections_max: 1024,
  open_requests_max: 4096,
  user_frames_per_s_max: 20_000,
  host_frames_per_s_max: 40_000,
  user_open_chars_max: 64 * MI,
  unread_reply_chars_max: 4 * MI,
  user_unread_chars_max: 64 * MI,
  host_pending_chars_max: 128 * MI,
  host_open_chars_max: 128 * MI,
  host_unread_chars_max: 128 * MI,
  client_queue_chars_max: 512 * MI,
  daemon_queue_chars_max: 1024 * MI,
  stalled_reader_ms: 60_000,
  stalled_daemon_ms: 600_000,
  handshake_ms_max: 10_000,
  unproved_connections_max: 256,
  unproved_ends_max: 100,
  unproved_ends_ms: 10_000,
  unproved_users_max: 512,
  proof_ms_max: 20_000,
  proof_chars_max: 16 * 1024,
  host_users_connections_max: 1024,
  hosts_users_connections_max: 3072,
  munge_calls_max: 2,
  munge_waiting_max: 1024,
  question_chars_max: 64 * 1024,
  question_ms_max: 10_000,
  host_connections_max: 64,
  host_questions_max: 8,
  dial_ms_max: 10_000,
  sched_ports: 20,
  sched_ports_max: 1000,
  sched_retry_ms: 1000,
  mom_connections_max: 64,
  task_text_chars_max: 2 * MI,
  task_signals_max: 16,
  mom_review_ms: 30_000,
  files_silent_ms: 120_000,
  files_open_ms: 30_000,
  files_refused_ms: 5000,
  files_connections_max: 64,
  files_host_connections_max: 16,
  files_offer_ms: 60_000,
  files_ask_ms: 60_000,
  files_look_ms: 5000,
  refused_retry_ms: 30_000,
  mom_vnodes_max: 10_000,
  status_interval_s_max: 300,
  keepalive_ms: 10_000,
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
