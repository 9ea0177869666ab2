/** The embedded model behind a server, with models and checkpoints in memory, for tests of real clients. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { type Server, serve } from '../../src/serve/http/index.ts';
import { createMemoryService, type MemoryService } from '../fakes/memory-service.ts';
import { ROOT } from './program.ts';

/** The token that clients use. */
export const TOKEN = 'a-token-of-the-tests';

/** A server that runs. */
export type Served = {
  readonly runtime: Runtime;
  readonly memory: MemoryService;
  readonly server: Server;
  /** With `/v1`, as clients of completions want it. */
  readonly baseURL: string;
  readonly close: () => Promise<void>;
};

/** Starts one. The embedded model is `tiny`. */
export async function openServed(): Promise<Served> {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-served-'));
  const runtime = await createRuntime({
    home,
    threads: 1,
    models: { tiny: path.join(ROOT, 'models', 'onpolicy-tiny.gguf') },
  });
  const memory = createMemoryService({ gradientSteps: 0 });
  const { models, checkpoints, trainingJobs, train } = memory;
  const service = {
    createCompletion: runtime.createCompletion.bind(runtime),
    close: () => runtime.close(),
    [Symbol.asyncDispose]: () => runtime.close(),
    stats: () => runtime.stats(),
    models,
    checkpoints,
    trainingJobs,
    train,
  };
  const server = await serve(service, { tokens: [TOKEN], models: ['tiny'] });
  const close = async (): Promise<void> => {
    await server.close();
    await runtime.close();
    fs.rmSync(home, { recursive: true, force: true });
  };
  return { runtime, memory, server, baseURL: `${server.url}/v1`, close };
}
