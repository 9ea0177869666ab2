/** Endpoints of vLLM and llama.cpp: what they answer is what the runtime answers to the same tokens, texts and conversations. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { createHandler, type Handler } from '../../../src/serve/http/index.ts';
import { ask } from './exchange.ts';

let runtime: Runtime;
let handler: Handler;
beforeAll(async () => {
  runtime = await createRuntime({ threads: 1, contextSize: 256 });
  handler = (request) => runtime.fetch(request);
});
afterAll(() => runtime.close());

// biome-ignore lint/suspicious/noExplicitAny: answers as their clients read them
type Json = any;
const post = async (path: string, body: unknown): Promise<Json> =>
  (await ask(handler, 'POST', path, { body })).body;
const events = (text: string): Json[] =>
  [...text.matchAll(/^data: (\{.*)$/gm)].map(([, line]) => JSON.parse(line!) as Json);

const SAMPLING = { max_tokens: 6, temperature: 1, seed: 3, ignore_eos: true };

describe('/inference/v1/generate', () => {
  it('continues tokens as a text completion does, with their log-probabilities', async () => {
    const token_ids = await runtime.tokenize('Once upon a time');
    const sampling_params = { ...SAMPLING, n: 2, logprobs: 2 };
    const answer = await post('/inference/v1/generate', { token_ids, sampling_params, request_id: 'mine' });
    const expected = await runtime.createTextCompletion({
      ...SAMPLING,
      ...{ prompt: token_ids, n: 2, logprobs: 2 },
      ...{ return_token_ids: true, return_tokens_as_token_ids: true },
      stream: false,
    });
    expect(answer).toMatchObject({
      request_id: 'mine',
      output_mode: 'tokens',
      usage: { completion_tokens: 12 },
    });
    for (const [i, { token_ids: ids, logprobs }] of expected.choices.entries()) {
      const choice = answer.choices[i];
      expect(choice).toMatchObject({ index: i, token_ids: ids, finish_reason: 'length' });
      expect(choice).not.toHaveProperty('text');
      const { content } = choice.logprobs;
      expect(content.map((one: Json) => one.token_id)).toEqual(ids);
      expect(content.map((one: Json) => one.logprob)).toEqual(logprobs!.token_logprobs);
      for (const [at, { top_logprobs }] of content.entries())
        expect(Object.fromEntries(top_logprobs.map((one: Json) => [one.token, one.logprob]))).toEqual(
          logprobs!.top_logprobs[at],
        );
    }
  });

  it('streams the same tokens, and gives the text and the prompt where asked', async () => {
    const token_ids = await runtime.tokenize('Once upon a time');
    const body = { token_ids, sampling_params: SAMPLING, output_mode: 'text', return_token_ids: true };
    const whole = await post('/inference/v1/generate', body);
    expect(whole.prompt_token_ids).toEqual(token_ids);
    const text = await post('/inference/v1/generate', {
      ...body,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = events(text);
    const choices = chunks.flatMap((chunk) => chunk.choices);
    expect(choices.flatMap((choice) => choice.token_ids)).toEqual(whole.choices[0].token_ids);
    expect(choices.map((choice) => choice.text).join('')).toBe(whole.choices[0].text);
    expect(chunks.at(-1).usage.completion_tokens).toBe(6);
    expect(chunks[0].prompt_token_ids).toEqual(token_ids);
    expect(text).toMatch(/data: \[DONE\]\s*$/);
  });

  it('goes on as far as the context does if nothing limits it', async () => {
    const answer = await post('/inference/v1/generate', {
      token_ids: [5, 6],
      sampling_params: { ignore_eos: true },
    });
    expect(answer.usage.total_tokens).toBe(256);
  });

  it.each([
    [{ token_ids: [] }, 'token_ids: expected a non-empty list'],
    [{ token_ids: [10 ** 9] }, 'token_ids.0: expected'],
    [{ token_ids: [1], sampling_params: { temperature: -1 } }, 'sampling_params.temperature: expected'],
    [{ token_ids: [1], sampling_params: { prompt: 'x' } }, 'sampling_params.prompt: expected no such key'],
    [{ token_ids: [1], features: {} }, 'features: expected no value: prompts of tokens have no pictures'],
    [{ token_ids: [1], output_mode: 'both' }, 'output_mode: expected'],
  ])('refuses %j', async (body, message) => {
    expect((await post('/inference/v1/generate', body)).error.message).toContain(message);
  });

  it('answers what /v1/completions/render makes, and /v1/completions/derender shows it as a text', async () => {
    const request = { prompt: ['Once upon', 'A story'], ...SAMPLING, logprobs: 1 };
    const rendered = await post('/v1/completions/render', request);
    expect(rendered.map((one: Json) => one.token_ids)).toEqual([
      await runtime.tokenize('Once upon', { addSpecialTokens: true }),
      await runtime.tokenize('A story', { addSpecialTokens: true }),
    ]);
    const generate_responses = [];
    for (const body of rendered) generate_responses.push(await post('/inference/v1/generate', body));
    const shown = await post('/v1/completions/derender', { generate_responses, prompt_tokens: [2, 3] });
    const direct = await runtime.createTextCompletion({ ...request, stream: false });
    expect(shown.choices.map((one: Json) => one.text)).toEqual(direct.choices.map(({ text }) => text));
    expect(shown.choices.map((one: Json) => one.logprobs.token_logprobs)).toEqual(
      direct.choices.map(({ logprobs }) => logprobs!.token_logprobs),
    );
    expect(shown.usage).toEqual({ prompt_tokens: 5, completion_tokens: 12, total_tokens: 17 });
    const { prompt_tokens } = direct.usage;
    expect((await post('/v1/completions/derender', { generate_responses })).usage).toMatchObject({
      prompt_tokens,
    });
    expect((await post('/v1/completions/render', { prompt: 'x', suffix: 'y' })).error.message).toContain(
      'suffix: expected no value for a prompt of tokens',
    );
    const wrong = { generate_responses, prompt_tokens: [2] };
    expect((await post('/v1/completions/derender', wrong)).error.message).toContain(
      'prompt_tokens: expected',
    );
  });
});

describe('/v1/chat/completions/batch', () => {
  const conversations = ['Hi', 'Tell me a story.', 'Why?'].map((content) => [
    { role: 'user' as const, content },
  ]);

  it('answers each conversation as it is answered alone', async () => {
    const answer = await post('/v1/chat/completions/batch', { messages: conversations, ...SAMPLING, n: 2 });
    const alone = await Promise.all(
      conversations.map((messages) =>
        runtime.createCompletion({ messages, ...SAMPLING, n: 2, stream: false }),
      ),
    );
    expect(answer.choices.map((choice: Json) => [choice.index, choice.message.content])).toEqual(
      alone.flatMap(({ choices }) => choices).map(({ message }, index) => [index, message.content]),
    );
    const sum = alone.reduce((total, { usage }) => total + usage.total_tokens, 0);
    expect(answer.usage.total_tokens).toBe(sum);
  });

  it.each([
    [{ messages: 'x' }, 'messages: expected a list of conversations, got "x"'],
    [{ messages: [] }, 'messages: expected a list of conversations, got'],
    [
      { messages: [{ role: 'user', content: 'x' }] },
      'messages.0: expected a list of messages, got an object',
    ],
    [{ messages: [[{ role: 'user', content: 5 }]] }, 'messages.0.0.content'],
    [{ messages: conversations, stream: true }, 'stream: expected no value for several conversations'],
    [{ messages: conversations, top_p: 5 }, 'top_p: expected'],
  ])('refuses %j', async (body, message) => {
    expect((await post('/v1/chat/completions/batch', body)).error.message).toContain(message);
  });
});

describe('/infill', () => {
  it('is refused by the name of the field where the model has no tokens for it, and checks its fields', async () => {
    const refused = await post('/infill', { input_prefix: 'a', input_suffix: 'b' });
    expect(refused.error.message).toContain('input_suffix: this model has no tokens to fill in the middle');
    for (const [fields, message] of [
      [{ n_predict: -2 }, 'n_predict: expected an integer >= -1'],
      [{ input_extra: [{ text: 'x' }] }, 'input_extra: expected a list of at most 0'],
      [{ n: 2 }, 'n: expected 1 or null, got 2'],
      [{ temperature: -1 }, 'temperature: expected'],
    ] as const)
      expect(
        (await post('/infill', { input_prefix: 'a', input_suffix: 'b', ...fields })).error.message,
      ).toContain(message);
  });

  it('has the words of llama.cpp, whole and streamed', async () => {
    const service = {
      ...runtime,
      createTextCompletion: ({ suffix, prompt, ...rest }: Json) =>
        runtime.createTextCompletion({ ...rest, prompt: `${prompt}|${suffix}` }), // a model that has the tokens
    };
    const over = createHandler(service as never);
    const body = {
      input_prefix: 'Once',
      input_suffix: 'end',
      n_predict: 5,
      temperature: 0,
      ignore_eos: true,
    };
    const direct = await runtime.createTextCompletion({
      ...{ prompt: 'Once|end', max_tokens: 5, temperature: 0, ignore_eos: true },
      return_token_ids: true,
      stream: false,
    });
    const whole = (await ask(over, 'POST', '/infill', { body })).body as Json;
    const [{ text, token_ids }] = direct.choices as [(typeof direct.choices)[0]];
    const end = { stop: true, stop_type: 'limit', stopping_word: '', tokens_predicted: 5 };
    expect(whole).toMatchObject({ content: text, tokens: token_ids, ...end });
    const streamed = (await ask(over, 'POST', '/infill', { body: { ...body, stream: true } })).body as string;
    const parts = events(streamed);
    expect(parts.map((part) => part.content).join('')).toBe(text);
    expect(parts.flatMap((part) => part.tokens)).toEqual(token_ids);
    expect(parts.at(-1)).toMatchObject(end);
    expect(streamed).not.toContain('[DONE]');
    const word = await ask(over, 'POST', '/infill', { body: { ...body, stop: [text.slice(-1)] } });
    expect(word.body).toMatchObject({ stop_type: 'word', stopping_word: text.slice(-1) });
  });
});

describe('what runs', () => {
  it('/load counts other requests; a response that is streamed can be cancelled by its id', async () => {
    const over = createHandler(runtime);
    const idle = (await ask(over, 'GET', '/load')).body;
    expect(idle).toEqual({ server_load: 0 });
    const response = await over(
      new Request('http://localhost/v1/responses', {
        method: 'POST',
        body: JSON.stringify({
          input: 'Tell me a story.',
          stream: true,
          ignore_eos: true,
          max_output_tokens: 200,
        }),
      }),
    );
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let first = '';
    while (!/^data: .*\n/m.test(first)) {
      const part = await reader.read();
      if (part.done) throw new Error(first);
      first += part.value;
    }
    const [{ response: created }] = events(first) as [Json];
    expect((await ask(over, 'GET', '/load')).body).toEqual({ server_load: 1 });
    const path = `/v1/responses/${created.id}/cancel`;
    expect((await ask(over, 'POST', path)).body).toMatchObject({ id: created.id, status: 'cancelled' });
    let rest = '';
    for (let part = await reader.read(); !part.done; part = await reader.read()) rest += part.value;
    expect(rest).toContain('ABORTED');
    expect(rest).not.toContain('response.completed');
    expect(await ask(over, 'POST', path)).toMatchObject({ status: 404 });
    const done = (await ask(over, 'POST', '/v1/responses', { body: { input: 'Hi', max_output_tokens: 2 } }))
      .body as Json;
    const late = await ask(over, 'POST', `/v1/responses/${done.id}/cancel`);
    expect(late.body).toMatchObject({
      error: { message: 'id: expected a response that is being streamed, got one that is incomplete' },
    });
  });
});
