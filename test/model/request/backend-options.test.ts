import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Reject } from "#model/pbse.ts";
import { parseBackendOptions } from "#model/request/backend-options.ts";

test("options of each type of backend, short and long", () => {
  const rows: readonly (readonly [type: string, text: string, options: Record<string, string>])[] = [
    ["slurm", "", {}],
    ["slurm", "-c 4 --mem=2G -p main", { "cpus-per-task": "4", mem: "2G", partition: "main" }],
    [
      "slurm",
      "--cpus-per-task 8 -Cfast -x 'n1,n2' -L lic1:2",
      { "cpus-per-task": "8", constraint: "fast", exclude: "n1,n2", licenses: "lic1:2" },
    ],
    [
      "slurm",
      "-w n3 -q high --reservation=r1 --gres gpu:1 --tmp=10G",
      { nodelist: "n3", qos: "high", reservation: "r1", gres: "gpu:1", tmp: "10G" },
    ],
    ["gridengine", "-5", { p: "-5" }],
    ["lsf", '-R "select[mem>100] span[hosts=1]" -sp 40 -app big', { R: "select[mem>100] span[hosts=1]", sp: "40", app: "big" }],
    ["pbs", "-q workq -p -10", { q: "workq", p: "-10" }],
    ["openstack", "--flavor m1.small", { flavor: "m1.small" }],
    ["local", "anything at all", {}],
  ];
  for (const [type, text, options] of rows) assert.deepEqual(parseBackendOptions(type, text), options, `${type} ${text}`);
});

test("X1: what is not in the list of a type is refused with the list", () => {
  const rows: readonly (readonly [type: string, text: string, says: RegExp])[] = [
    ["slurm", "--wrap=id", /unknown option --wrap=id; options: -c\|--cpus-per-task --mem/],
    ["slurm", "--uid=0", /unknown option/],
    ["slurm", "-o /etc/passwd", /unknown option -o/],
    ["slurm", "-d after:1", /unknown option/],
    ["slurm", "-h", /options: -c\|--cpus-per-task/],
    ["slurm", "-c many", /bad value "many" of option cpus-per-task/],
    ["slurm", "-p", /bad value "" of option partition/],
    ["slurm", "-p --wrap=id", /bad value "--wrap=id"/],
    ["slurm", "-p 'a", /quote ' is not closed/],
    ["slurm", "-p a\nb", /control characters/],
    ["gridengine", "-p 5", /takes one number/],
    ["gridengine", "high", /takes one number/],
    ["lsf", "-o /etc/x", /unknown option/],
    ["pbs", "-l walltime=1", /unknown option/],
    ["mesos", "-x", /no backend of type mesos/],
    ["slurm", "x".repeat(5000), /longer than 4096/],
  ];
  for (const [type, text, says] of rows)
    assert.throws(
      () => parseBackendOptions(type, text),
      (error) => error instanceof Reject && error.code === 15014 && says.test(error.text ?? ""),
      `${type} ${text}`,
    );
});

test("X1: no value begins with a dash, whatever is typed", () => {
  fc.assert(
    fc.property(fc.string(), fc.constantFrom("slurm", "lsf", "openstack"), (text, type) => {
      try {
        return Object.values(parseBackendOptions(type, text)).every((value) => !value.startsWith("-"));
      } catch (error) {
        return error instanceof Reject;
      }
    }),
  );
});
