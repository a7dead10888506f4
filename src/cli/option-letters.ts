// Option letters for getopt (getopt.ts) that are needed in several places. Pure.

/** Options that set an attribute of a job. job-options.ts reads their values. */
export const JOB_OPTION_LETTERS = "a:A:c:e:j:k:l:m:M:N:o:p:P:r:R:S:u:";
/** All options of qsub. */
export const QSUB_LETTERS = `${JOB_OPTION_LETTERS}C:fhIJ:q:v:VW:Xz`;
