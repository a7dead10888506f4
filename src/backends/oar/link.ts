// The calls that a cluster of type oar makes to OAR. There are two implementations: OAR's commands (commands.ts) and its REST API (rest.ts). Types only.

import type { Owner } from "../contract/backend.ts";
import type { Capacity } from "../contract/cluster.ts";
import type { OarJob } from "./answer.ts";
import type { OarArray } from "./request.ts";

/** The place of a job: its index in the batch, and the id of its array. */
export type Place = { readonly index: number; readonly array_id: number };

/** owner: the user who acts; null: the user of the grid. */
export type OarLink = {
  /** Returns the version of OAR. */
  probe(): Promise<string>;
  /** Submits an array, and returns what oarsub printed. */
  submit(array: OarArray, owner: Owner | null): Promise<string>;
  /** Returns the jobs of this grid on this cluster that have not ended. Of jobs in `known`, only id, name, state and owner need be right. */
  live(known: ReadonlyMap<string, Place>): Promise<readonly OarJob[]>;
  /** Returns jobs by their ids, also ended ones. Ids that OAR does not know are left out. */
  jobs(ids: readonly string[]): Promise<readonly OarJob[]>;
  /** Acts on jobs. It is not an error if a job does not exist, has ended or is already in the wanted state. */
  act(action: OarAction, ids: readonly string[], owner: Owner | null): Promise<void>;
  /** Acts on all jobs of an array. */
  actOnArray(action: OarAction, array_id: number, owner: Owner | null): Promise<void>;
  capacity(): Promise<Capacity>;
};

/** resume: lets held jobs start. hold: keeps waiting jobs from starting; jobs that run are not touched. delete: ends jobs. */
export type OarAction = "resume" | "hold" | "delete";
