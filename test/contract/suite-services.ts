/** A runtime with a model for each format of tool calls, in process, in another process and over HTTP, for the tests of a file. */
import { afterAll, beforeAll } from 'vitest';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { connect, type Server, serve } from '../../src/serve/http/index.ts';
import { TOOL_FORMATS } from '../../src/template/tool-calls/index.ts';
import { EXACT_MODEL } from '../answer/fields/model.ts';
import { PLAIN } from './suite-requests.ts';

const LIMITS = { contextSize: 2560, maxSequences: 8, threads: 1 };

type SuiteServices = {
  runtime: Runtime;
  isolated: Runtime;
  server: Server;
  client: ReturnType<typeof connect>;
};

/** Opens the services before the tests and closes them afterwards. The fields are set once tests run. */
export function serveSuites(): SuiteServices {
  const served = {} as SuiteServices;
  beforeAll(async () => {
    const model = { path: EXACT_MODEL, chatTemplate: PLAIN, ...LIMITS };
    const options = {
      model: { ...model, toolFormat: 'hermes' },
      models: Object.fromEntries(TOOL_FORMATS.map((toolFormat) => [toolFormat, { ...model, toolFormat }])),
      prefixCache: false, // what it saves is part of the usage
      memory: { idleMs: 5000 }, // dozens of models in two processes took 20 GB
    } as const;
    served.runtime = await createRuntime(options);
    served.isolated = await createRuntime({ ...options, isolate: true });
    served.server = await serve(served.runtime, { maxLogprobs: null });
    served.client = connect({ baseUrl: `${served.server.url}/v1` });
  });
  afterAll(async () => {
    await served.client.close();
    await served.server.close();
    await served.isolated.close();
    await served.runtime.close();
  });
  return served;
}
