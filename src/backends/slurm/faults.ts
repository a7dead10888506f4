// Tells the kind of an error of Slurm by its text. Pure.

import { type Fault, type FaultRule, kindOf } from "../contract/fault.ts";

/** Texts of sbatch, squeue, scancel and scontrol; the first that matches decides. */
const RULES: readonly FaultRule[] = [
  [/Unable to contact slurm controller|Connection refused|Socket timed out|Zero Bytes were transmitted/i, "transient"],
  [/temporarily unable to accept job|Resource temporarily unavailable|too many jobs|job count/i, "limit"],
  [/(?:Assoc|QOS|Account|User).*(?:limit|Max|Grp)|policy limit|Job violates accounting/i, "limit"],
  [/node configuration is not available|cannot be satisfied|can not be satisfied|Invalid license/i, "impossible"],
  [/Invalid generic resource|Invalid feature|Invalid node name|reservation/i, "impossible"],
  [/Requested time limit is invalid|more processors requested|Memory required by task|node count specification/i, "impossible"],
  [/Invalid (?:job array|qos|--mem|--tmp|--gres)/i, "impossible"],
  [/invalid partition|Invalid account|Invalid user|Unable to process configuration|cannot stat file/i, "configuration"],
  [/permission denied|authentication|munge|credential|entry for --cluster|unrecognized option|Incompatible versions/i, "configuration"],
];

/** Returns the kind of the fault that a program of Slurm reported. An unknown text is transient, so that the backend is asked again soon. */
export const slurmKind = (text: string): Fault["kind"] => kindOf(text, RULES, "transient");

/** Reasons of waiting jobs that do not go away while nobody changes the job or Slurm's configuration. */
const REASONS: readonly FaultRule[] = [
  [/^(?:PartitionTimeLimit|PartitionNodeLimit|PartitionConfig|BadConstraints|DeadLine|TimeLimit)/, "impossible"],
  [/^(?:QOS(?:MaxWall|MinGRES|MaxNodePerJob|MaxCpuPerJob)|AssocMaxWall|AssocMax(?:Nodes|CPU|Cpu)PerJob)/, "impossible"],
  [/^(?:Assoc|QOS|Grp|Max|JobArrayTaskLimit).*(?:Limit|Max|Grp)/i, "limit"],
  [/^(?:AccountNotAllowed|InvalidAccount|InvalidQOS|QOSNotAllowed|ReservationDeleted|Reservation$)/, "configuration"],
  [/^(?:JobHeldUser|JobHeldAdmin|JobLaunchFailure|job requeued in held state|launch failed requeued held)/, "configuration"],
  [/^(?:PartitionDown|PartitionInactive)/, "configuration"],
];

/** Returns the fault of a waiting job with a reason; null: it waits for its turn. */
export function reasonFault(reason: string): Fault | null {
  const rule = REASONS.find(([says]) => says.test(reason));
  return rule === undefined ? null : { kind: rule[1], text: reason };
}
