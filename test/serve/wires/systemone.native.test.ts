/** System One's form of decisions: TypeSafe's own requests against the method of the service, and what is refused. */
import { choice, noul, score, TypeSafeClient } from '@typesafe-ai/sdk';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { createFetch, serve } from '../../../src/serve/http/index.ts';

let runtime: Runtime;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1 });
});
afterAll(() => runtime.close());

type Answer = { answers: Record<string, Record<string, unknown>>; usage: object; model: string };
async function post(
  path: string,
  body: object,
): Promise<{ status: number; body: Answer & { error?: { message: string } } }> {
  const response = await createFetch(runtime)(`http://in.process${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Answer };
}

const STATE = 'The invoice of May was paid twice.';

describe("System One's form", () => {
  it.each(['/v1/systemone', '/systemone', '/v1/decisions'])('%s: the numbers of the method', async (path) => {
    const { status, body } = await post(path, {
      model: '',
      state: STATE,
      questions: {
        urgent: { type: 'noul', instructions: 'Is it urgent?', criteria: { true: 'today', false: null } },
        team: { type: 'choice', criteria: { billing: 'money', support: null } },
        anger: {
          type: 'score',
          instructions: { ask: 'How angry?' },
          criteria: ['calm', null, { level: 'furious' }],
        },
      },
    });
    expect(status).toBe(200);
    const { answers, usage } = await runtime.decide({
      input: STATE,
      questions: {
        urgent: { type: 'predicate', instructions: 'Is it urgent?', criteria: { true: 'today' } },
        team: {
          type: 'choice',
          instructions: 'Which option fits?',
          choices: [{ value: 'billing', description: 'money' }, { value: 'support' }],
        },
        anger: {
          type: 'score',
          instructions: '{"ask":"How angry?"}',
          levels: [{ label: 'calm' }, { label: '1' }, { label: '{"level":"furious"}' }],
        },
      },
    });
    const { urgent, team, anger } = answers;
    expect(body.answers).toEqual({
      urgent: { type: 'noul', noul: urgent.probability },
      team: {
        type: 'choice',
        choice: team.choice,
        confidence: team.confidence,
        probabilities: Object.fromEntries(
          team.probabilities.map(({ value, probability }) => [value, probability]),
        ),
      },
      anger: {
        type: 'score',
        score: anger.score,
        confidence: anger.confidence,
        legend: { 0: 'calm', 1: null, 2: { level: 'furious' } },
        probabilities: Object.fromEntries(
          anger.probabilities.map(({ value, probability }) => [value, probability]),
        ),
      },
    });
    expect(body.usage).toEqual({ input_tokens: usage.input_tokens, output_tokens: 0 });
  });

  it('reads a state of JSON, and null; one label and one level are certain', async () => {
    const only = {
      one: { type: 'choice', criteria: { alone: null } },
      level: { type: 'score', criteria: ['only'] },
    };
    const asked = { is: { type: 'noul', instructions: 'Is 69 greater than 34?' } };
    for (const state of [{ paid: [1, 2] }, ['a'], null]) {
      const { body } = await post('/v1/systemone', { state, questions: { ...only, ...asked } });
      expect(body.answers['one']).toEqual({
        type: 'choice',
        choice: 'alone',
        confidence: 1,
        probabilities: { alone: 1 },
      });
      expect(body.answers['level']).toEqual({
        type: 'score',
        score: 0,
        confidence: 1,
        legend: { 0: 'only' },
        probabilities: { 0: 1 },
      });
      expect(body.answers['is']!['noul']).toBeGreaterThan(0.9);
    }
    const { body } = await post('/v1/systemone', { state: null, model: 'x', questions: only });
    expect(body).toMatchObject({ model: 'x', usage: { input_tokens: 0, output_tokens: 0 } });
  });

  it.each<[string, object, string]>([
    ['no questions', { state: 'x', questions: {} }, 'questions: expected at least one question'],
    [
      'a question that says nothing',
      { state: 'x', questions: { a: { type: 'noul' } } },
      'questions.a.instructions: expected a question, or criteria, got nothing',
    ],
    [
      "a kind of OpenAI's form",
      { state: 'x', questions: { a: { type: 'predicate', instructions: 'x' } } },
      'questions.a.type: expected "noul", "choice" or "score"',
    ],
    [
      'a choice without labels',
      { state: 'x', questions: { a: { type: 'choice', criteria: {} } } },
      'questions.a.criteria: expected 1 to 255 labels',
    ],
    [
      'a state of a number',
      { state: 5, questions: {} },
      'state: expected a string, an object, a list or null, got 5',
    ],
    ['neither form', { questions: {} }, 'input: this field is required, got nothing'],
  ])('refuses %s', async (_, body, message) => {
    const answer = await post('/v1/decisions', body);
    expect(answer.status).toBe(400);
    expect(answer.body.error!.message).toContain(message);
  });

  it('names the state that is too long', async () => {
    const questions = { a: { type: 'noul', instructions: 'Is it?' } };
    const { status, body } = await post('/systemone', { state: 'long '.repeat(5000), questions });
    expect([status, body.error]).toMatchObject([400, { param: 'state' }]);
  });
});

describe("TypeSafe's own client", () => {
  const questions = {
    greater: noul('Is 69 greater than 34?'),
    team: choice('Which team?', { billing: 'money', support: null }),
    anger: score({ ask: 'How angry?' }, ['calm', null, 'furious']),
  };
  const request = { state: { ticket: STATE, paid: [1, 2] }, questions };

  it.each(['in process', 'over HTTP'])('reads answers, models and errors %s', async (where) => {
    const server = where === 'over HTTP' ? await serve(runtime, { port: 0 }) : null;
    const given = server
      ? { baseURL: server.url }
      : { baseURL: 'http://in.process', fetch: createFetch(runtime) };
    const client = new TypeSafeClient({ apiKey: 'x', defaultModel: 'onpolicy-tiny', ...given });
    try {
      const { model, answers, usage } = await client.systemOne(request);
      expect(model).toBe('onpolicy-tiny');
      expect(answers.greater.noul).toBeGreaterThan(0.9);
      expect(['billing', 'support']).toContain(answers.team.choice);
      expect(answers.team.probabilities.billing + answers.team.probabilities.support).toBeCloseTo(1, 12);
      const { probabilities, score: mean, legend } = answers.anger;
      expect(mean).toBeCloseTo(probabilities['1'] + 2 * probabilities['2'], 12);
      expect(legend).toEqual({ 0: 'calm', 1: null, 2: 'furious' });
      expect(usage.input_tokens).toBeGreaterThan(0);
      expect((await client.models.list()).map(({ name }) => name)).toContain('onpolicy-tiny');
      await expect(client.systemOne({ ...request, state: 'long '.repeat(5000) })).rejects.toMatchObject({
        status: 400,
        message: expect.stringContaining('maximum context length'),
      });
    } finally {
      await server?.close();
    }
  });
});
