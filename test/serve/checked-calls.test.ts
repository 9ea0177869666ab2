/** A request that was checked once is not trusted after anybody could have changed it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { OnpolicyError } from '../../src/errors.ts';
import type { ChatCompletionRequest } from '../../src/protocol/index.ts';
import type { Completions, Service } from '../../src/protocol/service/index.ts';
import { createHandler, createPool } from '../../src/serve/http/index.ts';
import { answerOf } from '../fakes/memory-answers.ts';
import { createMemoryService } from '../fakes/memory-service.ts';
import { ask, HELLO } from './http/exchange.ts';

type Changed = { temperature?: unknown; messages: { content: unknown }[] };

/** A member that keeps the requests that it gets, and answers or fails. It checks nothing. */
function member(fails = false): { service: Completions; got: Changed[] } {
  const memory = createMemoryService();
  const got: Changed[] = [];
  const createCompletion = async (request: ChatCompletionRequest) => {
    got.push(structuredClone(request) as never);
    if (!fails) return answerOf({ id: '1', created: 0, model: '' }, 'hello');
    await sleep(1);
    throw new OnpolicyError('NETWORK_FAILED', 'gone');
  };
  return { service: { ...memory, createCompletion } as Completions, got };
}

/** A pool with this method in place of its own, which gets what it did. */
function replaced(change: (request: Changed) => unknown): Service {
  const pool = createPool([member().service]);
  const own = pool.createCompletion.bind(pool);
  return Object.assign(pool, {
    createCompletion: (request: ChatCompletionRequest) => own(change(request as never) as never),
  });
}

describe('a request of a server is checked again', () => {
  it.each<[string, (request: Changed) => unknown]>([
    ['changes it', (request) => Object.assign(request, { temperature: 'hot' })],
    ['makes another one', (request) => ({ ...request, temperature: 'hot' })],
    ['changes what is in it', (request) => Object.assign(request, { messages: [{ content: 5 }] })],
  ])('where the method of its service was replaced by one that %s', async (_, change) => {
    const { status, body } = await ask(createHandler(replaced(change)), 'POST', '/v1/chat/completions', {
      body: HELLO,
    });
    expect(status).toBe(400);
    expect(body).toMatchObject({ error: { code: 'INVALID_REQUEST' } });
  });

  it('where a wrapper keeps it, changes it and sends it anew', async () => {
    const pool = createPool([member().service]);
    const kept: Changed[] = [];
    const wrapper = {
      ...member().service,
      createCompletion: (request: ChatCompletionRequest) => {
        kept.push(request as never);
        return pool.createCompletion(request);
      },
    } as Completions;
    const sent = await ask(createHandler(wrapper), 'POST', '/v1/chat/completions', { body: HELLO });
    expect(sent.status).toBe(200);
    kept[0]!.temperature = 'hot';
    await expect(pool.createCompletion(kept[0] as never)).rejects.toThrow('temperature: expected');
  });
});

it('a request that is changed after the call is, for each member of a pool, what it was', async () => {
  const [first, second] = [member(true), member()];
  const pool = createPool([createPool([first.service]), createPool([second.service])]);
  const request = { messages: [{ role: 'user', content: 'before' }], temperature: 0 };
  const answer = pool.createCompletion(request as never);
  request.temperature = 'hot' as never;
  request.messages[0]!.content = 5 as never;
  await answer;
  expect(first.got).toHaveLength(1);
  expect(second.got).toEqual(first.got);
  expect(second.got[0]).toMatchObject({ messages: [{ content: 'before' }], temperature: 0 });
});
