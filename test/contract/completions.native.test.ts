/** The contract of completions, on the runtime, an isolated one, a client over a socket, and a pool. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import type { RuntimeOptions } from '../../src/protocol/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { connect, createPool, serve } from '../../src/serve/http/index.ts';
import { completionContract, type Opened } from './completion-contract.ts';

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-contract-'));
let reference: Runtime;
beforeAll(async () => {
  reference = await createRuntime({ threads: 1, prefixCache: false, speculation: false, home: root });
});
afterAll(async () => {
  await reference.close();
  fs.rmSync(root, { recursive: true, force: true });
});

const openRuntime = (more: RuntimeOptions = {}): Promise<Runtime> =>
  createRuntime({ threads: 1, speculation: false, home: fs.mkdtempSync(path.join(root, 'home-')), ...more });
const busyOf = (runtime: Runtime): number => runtime.stats().running + runtime.stats().waiting;

/** A runtime behind a server, and its client. */
async function openRemote(): Promise<Opened> {
  const runtime = await openRuntime();
  const server = await serve(runtime, { tokens: ['secret'], maxLogprobs: null });
  const service = connect({ baseUrl: `${server.url}/v1/`, apiKey: 'secret' });
  const close = async (): Promise<void> => {
    await service.close();
    await server.close();
    await runtime.close();
  };
  return { service, busy: () => busyOf(runtime), close };
}

const answer = (request: Parameters<Parameters<typeof completionContract>[2]>[0]) =>
  reference.createCompletion({ ...request, stream: false });

const KINDS: Readonly<Record<string, RuntimeOptions>> = {
  'the runtime': {},
  'an isolated runtime': { isolate: true },
  'a runtime with an isolated model': { model: { path: 'onpolicy-tiny', isolate: true } },
};
for (const [name, options] of Object.entries(KINDS))
  completionContract(
    name,
    async () => {
      const runtime = await openRuntime(options);
      return { service: runtime, busy: () => busyOf(runtime), close: () => runtime.close() };
    },
    answer,
  );

completionContract('a client', openRemote, answer);

completionContract(
  'a pool',
  async () => {
    const [runtime, remote] = [await openRuntime(), await openRemote()];
    const service = createPool([runtime, remote.service]);
    return {
      service,
      busy: () => busyOf(runtime) + remote.busy(),
      close: async () => {
        await service.close();
        await remote.close();
      },
    };
  },
  answer,
);
