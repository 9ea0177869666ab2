/** The contract of training, on the runtime and the embedded model, an isolated one, a client of it over a socket, and a pool. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Service } from '../../src/protocol/service/service.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { connect, createPool, serve } from '../../src/serve/http/index.ts';
import { trainingContract } from './training-contract.ts';

const EMBEDDED = fileURLToPath(new URL('../../models/onpolicy-tiny.gguf', import.meta.url));

/** A runtime with a home of its own. */
async function openRuntime(isolate = false): Promise<{ service: Service; close: () => Promise<void> }> {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-contract-'));
  const service = await createRuntime({ threads: 1, home, isolate });
  const close = async (): Promise<void> => {
    await service.close();
    fs.rmSync(home, { recursive: true, force: true });
  };
  return { service, close };
}

async function openRemote(): Promise<{ service: Service; close: () => Promise<void> }> {
  const runtime = await openRuntime();
  const server = await serve(runtime.service, { tokens: ['secret'] });
  const service = connect({ baseUrl: server.url, apiKey: 'secret', pollMs: 20 });
  const close = async (): Promise<void> => {
    await service.close();
    await server.close();
    await runtime.close();
  };
  return { service, close };
}

trainingContract('the runtime', () => openRuntime(), EMBEDDED);
trainingContract('an isolated runtime', () => openRuntime(true), EMBEDDED);
trainingContract('a client of the runtime', openRemote, EMBEDDED);
trainingContract(
  'a pool of runtimes',
  async () => {
    const { service, close } = await openRemote();
    return { service: createPool([service]), close };
  },
  EMBEDDED,
);
