/** 4,000 hostile requests over sockets: none is answered with a 500, none hangs, none leaves anything behind. */
import { expect, it } from 'vitest';
import { connect, serve } from '../../../src/serve/http/index.ts';
import { createMemoryService } from '../../fakes/memory-service.ts';
import { attack } from './hostile.ts';

it('a server withstands them', async () => {
  const errors: unknown[] = [];
  const service = createMemoryService();
  const server = await serve(service, {
    bodyTimeoutMs: 50,
    maxBodyBytes: 100_000,
    graceMs: 0,
    onError: (error) => errors.push(error),
  });
  const { statuses, failures } = await attack(Number(new URL(server.url).port), 20_261_121, 4_000);
  expect(failures.slice(0, 3)).toEqual([]);
  expect(errors).toEqual([]);
  expect([...statuses.keys()]).toEqual(expect.arrayContaining([0, 200, 400, 404, 405, 408, 413, 422, 431]));
  expect(service.active()).toBe(0);
  expect(({} as Record<string, unknown>)['a']).toBeUndefined();
  await using client = connect({ baseUrl: server.url });
  const request = { messages: [{ role: 'user', content: 'still there' }] } as const;
  expect((await client.createCompletion(request)).choices[0]!.message.content).toBe('still there');
  await server.close();
});
