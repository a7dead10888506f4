// The administrator's settings of a grid: the lines `name = value` of grid_priv/grid.conf (shell/settings-file.ts). Pure.

export type GridSettings = {
  /** the program that sends mail, by its absolute path, and the sender of the mails */
  readonly mailer: string;
  readonly mail_from: string;
  /** URLs to which notifications may be posted. A URL is allowed if one of these is a prefix of it (webhookFault) */
  readonly webhooks: readonly string[];
  /** least time between two notifications of one subscription; events meanwhile are told together */
  readonly notify_pause_s: number;
  /** attempts to deliver one notification, the time limit of one POST, and the pause after the first failed attempt, which doubles */
  readonly notify_attempts: number;
  readonly webhook_timeout_s: number;
  readonly notify_retry_s: number;
  /** how often a task runs again on its own (kills, walltime, exit codes 66 and 67), unless its campaign says so */
  readonly resubmissions_max: number;
};

/** The settings that are numbers: default, smallest and largest value of each. */
export const SETTING_NUMBERS = {
  notify_pause: [60, 0, 86_400],
  notify_attempts: [5, 1, 100],
  notify_retry: [10, 0.1, 3600],
  webhook_timeout: [10, 0.1, 300],
  resubmissions_max: [20, 0, 1_000_000],
} as const;

export const SETTINGS_DEFAULT: GridSettings = {
  mailer: "/usr/sbin/sendmail",
  mail_from: "adm",
  webhooks: [],
  notify_pause_s: SETTING_NUMBERS.notify_pause[0],
  notify_attempts: SETTING_NUMBERS.notify_attempts[0],
  notify_retry_s: SETTING_NUMBERS.notify_retry[0],
  webhook_timeout_s: SETTING_NUMBERS.webhook_timeout[0],
  resubmissions_max: SETTING_NUMBERS.resubmissions_max[0],
};
