/** The file of `--config` -> options of a runtime and of a server. */

import fs from 'node:fs/promises';
import { isObject } from '../../common/index.ts';
import type { RuntimeOptions, ServeOptions } from '../../index.ts';
import { text, wrongUsage } from './arguments.ts';

type Config = { readonly runtime: RuntimeOptions; readonly server: ServeOptions };

export const CONFIG = text('FILE', 'options of the runtime and of the server as JSON; flags win over it');

/** Reads the file. The options are checked where they are used. */
export async function readConfig(file: string | undefined): Promise<Config> {
  if (file === undefined) return { runtime: {}, server: {} };
  let value: unknown;
  try {
    value = JSON.parse(await fs.readFile(file, 'utf8'));
  } catch (cause) {
    throw wrongUsage(`--config: cannot read ${file}: ${(cause as Error).message}`);
  }
  const { runtime = {}, server = {}, ...rest } = (isObject(value) ? value : { '': value }) as Partial<Config>;
  if (Object.keys(rest).length > 0 || !isObject(runtime) || !isObject(server))
    throw wrongUsage(`--config: expected an object with runtime and server in ${file}`);
  return { runtime, server };
}
