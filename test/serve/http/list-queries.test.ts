/** Query parameters of lists, and long conversations of training requests -> named, refused or bounded. */
import { describe, expect, it } from 'vitest';
import { createHandler } from '../../../src/serve/http/server/handler.ts';
import { open } from '../../rl/store/homes.ts';

const conversation = (count: number) => Array.from({ length: count }, () => ({ role: 'user', content: 'x' }));

async function serve(options = {}) {
  const { runtime } = await open();
  const { id } = await runtime.models.create({ base_model: 'base' });
  const handler = createHandler(runtime, { allowAnonymous: true, ...options });
  const ask = (path: string, body?: object) =>
    handler(
      new Request(`http://here${path}`, {
        method: body ? 'POST' : 'GET',
        ...(body ? { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } } : {}),
      }),
    );
  return { ask, id };
}

describe('the query of a list', () => {
  it('has its unknown parameters named', async () => {
    const { ask, id } = await serve();
    const response = await ask(`/v1/preview/models/${id}/checkpoints?limit=5&project=x&purpose=y`);
    expect(response.status).toBe(200);
    expect(response.headers.get('x-ignored-fields')).toBe('project, purpose');
    expect(await response.json()).toMatchObject({ data: [], first_id: null, last_id: null });
  });

  it.each(['starting_after', 'ending_before', 'before', 'page', 'offset', 'cursor'])(
    'is refused with the cursor %s',
    async (name) => {
      const { ask, id } = await serve();
      for (const path of ['/v1/preview/training-jobs', `/v1/preview/models/${id}/checkpoints`]) {
        const response = await ask(`${path}?${name}=1`);
        expect(response.status).toBe(422);
        expect(JSON.stringify(await response.json())).toContain(name);
      }
    },
  );
});

describe('maxMessages', () => {
  it('bounds the conversations of trajectories and of supervised training', async () => {
    const { ask, id } = await serve({ maxMessages: 3 });
    const trajectory = (own: number, other: number) => ({
      reward: 1,
      messages_and_choices: conversation(own),
      additional_histories: [{ messages_and_choices: conversation(other) }],
    });
    const log = (own: number, other: number) => ({
      trajectory_groups: [{ trajectories: [trajectory(own, other)] }],
    });
    const path = `/v1/preview/models/${id}/log`;
    expect((await ask(path, log(3, 3))).status).toBe(200);
    expect((await ask(path, log(4, 1))).status).toBe(413);
    expect((await ask(path, log(1, 4))).status).toBe(413);
    const jobs = { model_id: id, ...log(4, 1) };
    expect((await ask('/v1/preview/training-jobs', jobs)).status).toBe(413);
    const sft = { model_id: id, data: [{ messages: conversation(4) }] };
    expect((await ask('/v1/preview/sft-training-jobs', sft)).status).toBe(413);
  });
});
