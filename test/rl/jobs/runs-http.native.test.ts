/** Requests as services of training runs document them -> their answers, over HTTP; supervised jobs and older names. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EMBEDDED_MODEL } from '../../../src/models/named-models.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { connect } from '../../../src/serve/http/client/connect.ts';
import { createHandler, type Handler } from '../../../src/serve/http/server/handler.ts';

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-runs-http-'));
const documented = JSON.parse(
  fs.readFileSync(new URL('./documented-requests.json', import.meta.url), 'utf8'),
) as { steps: [string, object][] };
let runtime: Runtime;
let handler: Handler;
beforeAll(async () => {
  runtime = await createRuntime({ home, gpu: false, threads: 1 });
  handler = createHandler(runtime, { allowAnonymous: true });
});
afterAll(async () => {
  await runtime.close();
  fs.rmSync(home, { recursive: true });
});

async function ask(method: string, at: string, body?: unknown, headers: Record<string, string> = {}) {
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await handler(new Request(`http://here${at}`, { method, headers, ...sent }));
  // biome-ignore lint/suspicious/noExplicitAny: bodies of any endpoint
  return { status: response.status, body: (await response.json()) as any };
}

const RUNS = '/v1/training/runs';

describe('training runs over HTTP', () => {
  it('answer the documented requests', async () => {
    const { body: run } = await ask('POST', RUNS, { model: EMBEDDED_MODEL, rank: 4 });
    expect(run).toMatchObject({ object: 'training_run', rank: 4, seed: 0, sequence: 0, states: [] });
    const results: Record<string, unknown>[] = [];
    for (const [i, [operation, request]] of documented.steps.entries()) {
      const { status, body } = await ask('POST', `${RUNS}/${run.id}/${operation}`, {
        ...request,
        sequence: i + 1,
      });
      expect(body).toMatchObject({ status: 'completed', sequence: i + 1 });
      expect(status).toBe(200);
      results.push(body.result);
    }
    const logprobs = (result: unknown) =>
      (result as { loss_fn_outputs: { logprobs: { data: number[]; shape: number[] } }[] }).loss_fn_outputs[0]!
        .logprobs;
    for (const result of [results[0], results[2]]) {
      expect(logprobs(result).shape).toEqual([4]);
      expect(logprobs(result).data.slice(0, 2)).toEqual([0, 0]); // no weight, no advantage
      expect(logprobs(result).data[3]).toBeLessThan(0);
    }
    const [, , , lost] = logprobs(results[0]).data;
    const sum = (results[0]!['metrics'] as Record<string, number>)['loss:sum']!;
    expect(sum).toBeCloseTo(-logprobs(results[0]).data[2]! - lost!, 5);
    expect(results[5]).toEqual({ path: `${run.model_id}@1` });
    expect(results[6]).toMatchObject({
      sequences: [{ tokens: expect.any(Array) }, { stop_reason: 'length' }],
    });
    expect((await ask('GET', `${RUNS}/${run.id}`)).body).toMatchObject({
      sequence: 8,
      states: ['step-0002'],
    });
    expect((await ask('DELETE', `${RUNS}/${run.id}`)).body).toMatchObject({ id: run.id });
    expect((await ask('GET', RUNS)).body).toEqual({ object: 'list', data: [] });
  });

  it('give pending results later, and repeated steps once', async () => {
    const { body: run } = await ask('POST', RUNS, { model: EMBEDDED_MODEL });
    const [operation, request] = documented.steps[0]!;
    const at = `${RUNS}/${run.id}/${operation}`;
    const first = await ask('POST', at, { ...request, wait_ms: 0 }, { 'idempotency-key': 'one' });
    expect(first).toMatchObject({ status: 202, body: { status: 'pending', sequence: 1 } });
    const { body } = await ask('GET', `/v1/training/requests/${first.body.request_id}`);
    expect(body).toMatchObject({ status: 'completed' });
    expect((await ask('POST', at, request, { 'idempotency-key': 'one' })).body).toEqual(body);
    await ask('DELETE', `${RUNS}/${run.id}`);
  });

  it.each<[string, string, unknown, number, RegExp]>([
    ['POST', RUNS, {}, 422, /model: this field is required/],
    ['POST', RUNS, { model: EMBEDDED_MODEL, rank: 0 }, 422, /rank: expected an integer from 1 to 1024/],
    ['GET', `${RUNS}/x`, undefined, 404, /there is no training run/],
    ['POST', `${RUNS}/x/optim_step`, {}, 404, /there is no training run/],
    ['POST', `${RUNS}/x/backward`, {}, 404, /no such endpoint/],
    [
      'GET',
      '/v1/training/requests/x?wait_ms=-1',
      undefined,
      422,
      /wait_ms: expected an integer >= 0, got -1/,
    ],
    ['GET', '/v1/training/requests/x', undefined, 404, /no open training run/],
  ])('refuse %s %s %j', async (method, at, body, status, message) => {
    const answer = await ask(method, at, body);
    expect(answer.status).toBe(status);
    expect(JSON.stringify(answer.body.detail)).toMatch(message);
  });
});

describe('jobs over HTTP', () => {
  it('are supervised, too', async () => {
    const { body: bases } = await ask('GET', '/v1/preview/base-models');
    expect(bases.data[0]).toMatchObject({ object: 'base_model' });
    await using service = connect({
      baseUrl: 'http://here',
      pollMs: 5,
      fetch: (input, init) => handler(new Request(input, init)),
    });
    const model = await service.models.create({ base_model: EMBEDDED_MODEL });
    const messages = [
      { role: 'user' as const, content: 'Hi' },
      { role: 'assistant' as const, content: 'Ho' },
    ];
    const job = await service.sft({ model_id: model.id, data: [{ messages }] });
    const { signal } = new AbortController();
    expect(runtime.trainingJobs.follow!(job.id, { after: null, signal })).not.toBeNull();
    const events = await handler(
      new Request(`http://here/v1/preview/training-jobs/${job.id}/events?stream=true`),
    );
    expect(await events.text()).toMatch(/training_started.*training_ended.*\n\ndata: \[DONE\]\n\n$/s);
    expect(await job.done).toMatchObject({ step: 1, model_id: model.id });
    await expect(service.sft({ model_id: model.id, data: [] })).rejects.toThrow(
      /data: expected a non-empty list/,
    );
  });

  it('know the older name of a setting', async () => {
    const job = { model_id: '0f8fad5b-d9cb-469f-a165-70867728950e', trajectory_groups: [] };
    const config = (experimental_config: object) =>
      ask('POST', '/v1/preview/training-jobs', { ...job, experimental_config });
    expect(JSON.stringify((await config({ kimi_k2_tau: -1 })).body)).toContain(
      'variant_k2_tau: expected a number >= 0',
    );
    expect(JSON.stringify((await config({ kimi_k2_tau: 1, variant_k2_tau: 1 })).body)).toContain(
      'kimi_k2_tau: expected no value with variant_k2_tau',
    );
    expect((await config({ kimi_k2_tau: 1 })).status).toBe(404); // no such model
  });
});
