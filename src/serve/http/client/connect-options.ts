/** Options of `connect` -> checked settings of a client. */
import http from 'node:http';
import {
  type Complete,
  type ConnectOptions,
  checkArguments,
  fault,
  throwFaults,
  withDefaults,
} from '../../../protocol/index.ts';

export type ClientSettings = Complete['ConnectOptions'];

/** Fills defaults in. Throws `INVALID_REQUEST` for an unknown option or a wrong value. */
export function checkConnectOptions(options: ConnectOptions): ClientSettings {
  const settings = withDefaults('ConnectOptions', checkArguments('ConnectOptions', options));
  const { baseUrl, headers } = settings;
  throwFaults([
    ...(URL.canParse(baseUrl) ? [] : [fault(['baseUrl'], 'value', 'an http or https URL', baseUrl)]),
    ...Object.keys(headers)
      .filter((name) => !isHeaderName(name))
      .map((name) => fault(['headers', name], 'value', 'a name that a header can have', name)),
  ]);
  return { ...settings, baseUrl: baseUrl.replace(/\/+$/, '').replace(/\/v1$/, '') };
}

function isHeaderName(name: string): boolean {
  try {
    http.validateHeaderName(name);
    return true;
  } catch {
    return false;
  }
}
