/** Hostile requests to the embedded model behind a server: legal ones are answered, others refused, and nothing keeps running. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, it } from 'vitest';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { serve } from '../../../src/serve/http/index.ts';
import { attack } from './hostile.ts';

it('the runtime withstands them', async () => {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-fuzz-'));
  await using runtime = await createRuntime({ threads: 1, contextSize: 256, home });
  const errors: unknown[] = [];
  const server = await serve(runtime, { bodyTimeoutMs: 50, onError: (error) => errors.push(error) });
  const { statuses, failures } = await attack(Number(new URL(server.url).port), 7, 1500);
  expect(failures.slice(0, 3)).toEqual([]);
  expect(errors).toEqual([]);
  expect(statuses.get(200)).toBeGreaterThan(50);
  await expect.poll(() => runtime.stats().running + runtime.stats().waiting).toBe(0);
  await server.close();
});
