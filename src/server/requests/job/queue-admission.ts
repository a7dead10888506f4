// Whether a queue takes a job that comes from elsewhere (qmove, routing).

export { admitJob as admit } from "../../submit/admission.ts";
