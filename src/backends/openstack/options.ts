// Reads the attributes of a backend object of type openstack, and the file with its credentials. Pure.

import { listOf } from "#model/attribute-reader.ts";
import { parseBackendOptions } from "#model/request/backend-options.ts";
import { BackendError } from "../contract/fault.ts";
import { type BackendSettings, numberSetting, textSetting, timeoutOf } from "../contract/settings.ts";

export type OpenStackOptions = {
  readonly url: string | null;
  /** the path of the file with the credentials */
  readonly credentials: string;
  readonly name_prefix: string;
  readonly image: string | null;
  readonly flavors: RegExp;
  /** null: auto */
  readonly networks: readonly string[] | null;
  readonly key_name: string | null;
  readonly security_groups: readonly string[];
  readonly max_spawns: number;
  readonly timeout_ms: number;
  readonly options: Readonly<Record<string, string>>;
};

export function openStackOptions({ attributes }: BackendSettings): OpenStackOptions {
  const networks = listOf(attributes, "networks");
  return {
    url: textSetting(attributes, "url"),
    credentials: textSetting(attributes, "credentials") ?? missing("credentials"),
    name_prefix: textSetting(attributes, "repo_key") ?? "",
    image: textSetting(attributes, "image"),
    flavors: new RegExp(`^(?:${textSetting(attributes, "flavors") ?? ".*"})$`),
    networks: networks.length === 0 ? null : networks,
    key_name: textSetting(attributes, "key_name"),
    security_groups: listOf(attributes, "security_groups"),
    max_spawns: numberSetting(attributes, "max_spawns") ?? missing("max_spawns"),
    timeout_ms: timeoutOf(attributes),
    options: parseBackendOptions("openstack", textSetting(attributes, "backend_opts") ?? ""),
  };
}

export type Credentials = {
  readonly url: string;
  readonly region: string | null;
  /** the path of a file with certificates of authorities */
  readonly cacert: string | null;
  /** the part `identity` of a request for a token */
  readonly identity: object;
  /** the part `scope`; null: the scope of the application credential */
  readonly scope: object | null;
  /** texts that must be in no log and no error */
  readonly secrets: readonly string[];
};

/**
 * Reads a file of lines `NAME=VALUE` as OpenStack's openrc files have them (`export`, several on one line, quotes). url: is used in place of OS_AUTH_URL; null:
 * OS_AUTH_URL counts.
 */
export function readCredentials(text: string, url: string | null): Credentials {
  const values = new Map(
    [...text.matchAll(/(?:^|\s)(OS_[A-Z_]+)=(?:"([^"\n]*)"|'([^'\n]*)'|(\S*))/g)].map(([, name = "", double, single, bare]) => [
      name,
      double ?? single ?? bare ?? "",
    ]),
  );
  const value = (name: string): string | null => values.get(name) || null;
  const need = (name: string): string => value(name) ?? missing(`${name} in the file of credentials`);
  const common = { url: (url ?? need("OS_AUTH_URL")).replace(/\/+$/, ""), region: value("OS_REGION_NAME"), cacert: value("OS_CACERT") };
  const id = value("OS_APPLICATION_CREDENTIAL_ID");
  if (id !== null) {
    const secret = need("OS_APPLICATION_CREDENTIAL_SECRET");
    return {
      ...common,
      identity: { methods: ["application_credential"], application_credential: { id, secret } },
      scope: null,
      secrets: [secret],
    };
  }
  const password = need("OS_PASSWORD");
  const domain = (kind: string): object => {
    const name = value(`OS_${kind}_DOMAIN_NAME`);
    return name === null ? { id: value(`OS_${kind}_DOMAIN_ID`) ?? "default" } : { name };
  };
  const user = { name: need("OS_USERNAME"), domain: domain("USER"), password };
  const project_id = value("OS_PROJECT_ID");
  const project = project_id === null ? { name: need("OS_PROJECT_NAME"), domain: domain("PROJECT") } : { id: project_id };
  return { ...common, identity: { methods: ["password"], password: { user } }, scope: { project }, secrets: [password] };
}

function missing(name: string): never {
  throw new BackendError({ kind: "configuration", text: `a backend of type openstack needs ${name}` });
}
