/** `reasoning.max_tokens`: after so many tokens of reasoning its end comes, whatever the model would write. */
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { ChatCompletion, ChatCompletionChunk, ChatCompletionRequest } from '../../src/protocol/index.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { connect, createHandler, createPool, serve } from '../../src/serve/http/index.ts';
import { REASONING_FORMATS, reasoningEnd } from '../../src/template/reasoning/index.ts';
import { openRuntime } from './asking.ts';
import { forced, PLAIN } from './fields/model.ts';

const { runtime } = openRuntime();
const OPENED = `${PLAIN}<think>\n`;

/** No special token, so that every answer is as long as it may be. */
const NO_END: Record<number, number> = {};
beforeAll(async () => {
  for (let id = 0; id < 1024; id++)
    if ((await runtime().detokenize([id])).startsWith('<|')) NO_END[id] = -100;
});

function asking(fields: Partial<ChatCompletionRequest> = {}): ChatCompletionRequest & { stream: false } {
  return {
    messages: [{ role: 'user', content: 'Tell me a story.' }],
    chat_template: OPENED,
    reasoning: { max_tokens: 5 },
    max_tokens: 40,
    return_token_ids: true,
    logit_bias: NO_END,
    seed: 4,
    ...fields,
    stream: false,
  };
}

const answer = (fields?: Partial<ChatCompletionRequest>): Promise<ChatCompletion> =>
  runtime().createCompletion(asking(fields));

describe('reasoning.max_tokens', () => {
  it.each(Object.values(REASONING_FORMATS).map((format) => [format.name, format] as const))(
    'ends reasoning that the prompt has opened: %s',
    async (_, format) => {
      const isHarmony = format.name === 'harmony';
      const begin = isHarmony ? '<|channel|>analysis<|message|>' : format.begin;
      const markers = isHarmony
        ? ['<|channel|>', '<|message|>']
        : [format.begin, format.end, ...(format.answerMarkers ?? [])];
      const said = format.name === 'think_response' ? ['<think></think><response></response>'] : markers;
      const template = `${PLAIN}{% if false %}${said.join('')}{% endif %}{{ ${JSON.stringify(begin)} }}`;
      const { choices, usage } = await answer({ chat_template: template, max_tokens: 60 });
      const [{ message, token_ids }] = choices as [ChatCompletion['choices'][number]];
      expect(usage.completion_tokens_details!.reasoning_tokens).toBe(5);
      const written = await runtime().detokenize(token_ids!.slice(0, 5));
      expect(message.reasoning!.trim()).toBe(written.trim());
      const end = await runtime().tokenize(reasoningEnd(format), { parseSpecial: true });
      expect(token_ids!.slice(5, 5 + end.length)).toEqual([...end]);
      expect(message.content!.length).toBeGreaterThan(0);
      expect(token_ids).toHaveLength(60);
    },
  );

  it('reasoning_budget_message is the end of the reasoning, and counts as reasoning', async () => {
    const reasoning_budget_message = ' Enough <|im_end|>.\n';
    const [plain] = (await answer()).choices;
    const { choices, usage } = await answer({ reasoning_budget_message });
    const reason = await runtime().tokenize(reasoning_budget_message);
    const ids = choices[0]!.token_ids!;
    expect(ids.slice(0, 5)).toEqual(plain!.token_ids!.slice(0, 5));
    expect(ids.slice(5, 5 + reason.length)).toEqual([...reason]);
    const end = await runtime().tokenize(reasoningEnd(REASONING_FORMATS.think), { parseSpecial: true });
    expect(ids.slice(5 + reason.length, 5 + reason.length + end.length)).toEqual([...end]);
    const { message } = choices[0]!;
    expect(message.reasoning!.trim()).toBe(`${plain!.message.reasoning!.trim()} Enough <|im_end|>.`);
    expect(usage.completion_tokens_details!.reasoning_tokens).toBe(5 + reason.length);
    const unread = await answer({ reasoning_budget_message, reasoning: null, max_tokens: 8 });
    expect(unread.choices[0]!.message.reasoning).not.toContain('Enough');
  });

  it('reasoning_budget_message is what endReasoning of a stream inserts', async () => {
    const { reasoning: _, ...asked } = asking({ reasoning_budget_message: ' Enough.' });
    const stream = await runtime().createCompletion({ ...asked, stream: true });
    let thought = '';
    for await (const { choices } of stream) {
      if (thought === '' && choices[0]!.delta.reasoning) await stream.endReasoning();
      thought += choices[0]!.delta.reasoning ?? '';
    }
    expect(thought).toMatch(/ Enough\.$/);
  });

  it('refuses a reasoning_budget_message that ends the reasoning itself', async () => {
    await expect(answer({ reasoning_budget_message: 'I stop.</think>' })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('reasoning_budget_message: expected a text without "</think>"'),
    });
  });

  it('has the name that vLLM gives it, too', async () => {
    const { choices } = await answer();
    const { reasoning: _, ...named } = asking({ thinking_token_budget: 5 });
    expect((await runtime().createCompletion({ ...named, stream: false })).choices).toEqual(choices);
  });

  it('0 ends it before the first word', async () => {
    const { choices, usage } = await answer({ reasoning: { max_tokens: 0 } });
    expect(choices[0]!.message.reasoning).toBe(null);
    expect(usage.completion_tokens_details!.reasoning_tokens).toBe(0);
  });

  it('leaves shorter reasoning alone, and counts it', async () => {
    const asked = await forced(runtime(), '<think>why not</think>so', {
      chat_template: `${PLAIN}{% if false %}<think></think>{% endif %}`,
    });
    const own = await runtime().createCompletion({ ...asked, stream: false });
    const held = await runtime().createCompletion({ ...asked, reasoning: { max_tokens: 50 }, stream: false });
    expect(held.choices).toEqual(own.choices);
    const inside = await runtime().tokenize('why not');
    expect(held.usage.completion_tokens_details!.reasoning_tokens).toBeGreaterThanOrEqual(inside.length);
  });

  it('ends reasoning that the answer begins, under a logits processor', async () => {
    const asked = await forced(runtime(), '<think>one two three four five six seven eight</think>so', {
      chat_template: `${PLAIN}{% if false %}<think></think>{% endif %}`,
      reasoning: { max_tokens: 3 },
    });
    const { usage, choices } = await runtime().createCompletion({ ...asked, stream: false });
    expect(usage.completion_tokens_details!.reasoning_tokens).toBe(3);
    expect(choices[0]!.message.content).not.toBe(null);
  });

  it('streams what it answers whole, for each choice', async () => {
    const whole = await answer({ n: 3 });
    expect(whole.usage.completion_tokens_details!.reasoning_tokens).toBe(15);
    const texts = whole.choices.map(() => ({ reasoning: '', content: '' }));
    for await (const { choices } of await runtime().createCompletion({ ...asking({ n: 3 }), stream: true }))
      for (const { index, delta } of choices) {
        texts[index]!.reasoning += delta.reasoning ?? '';
        texts[index]!.content += delta.content ?? '';
      }
    expect(texts).toEqual(
      whole.choices.map(({ message: { reasoning, content } }) => ({ reasoning, content })),
    );
  });

  it('comes before structured output', async () => {
    const schema = {
      type: 'object',
      properties: { a: { enum: ['x', 'y'] } },
      required: ['a'],
      additionalProperties: false,
    };
    const { choices, usage } = await answer({
      response_format: { type: 'json_schema', json_schema: { name: 'a', schema } },
      logit_bias: {},
    });
    expect(usage.completion_tokens_details!.reasoning_tokens).toBe(5);
    expect(['x', 'y']).toContain((JSON.parse(choices[0]!.message.content!) as { a: string }).a);
  });

  it('reports the log-probability of every token, forced ones too', async () => {
    const plain = await answer({ temperature: 0 });
    const { choices } = await answer({ temperature: 0, logprobs: true, top_logprobs: 2 });
    expect(choices[0]!.token_ids).toEqual(plain.choices[0]!.token_ids);
    const entries = choices[0]!.logprobs!.content;
    expect(entries).toHaveLength(40);
    expect(entries.every(({ logprob, top_logprobs }) => logprob <= 0 && top_logprobs.length === 2)).toBe(
      true,
    );
  });

  it('is the same with drafts', async () => {
    const repeats = {
      messages: [{ role: 'user' as const, content: 'one two one two one two one two' }],
      temperature: 0,
    };
    const plain = await answer(repeats);
    expect((await answer({ ...repeats, speculation: 'auto' })).choices).toEqual(plain.choices);
  });

  it('endReasoning of a stream ends it at once, and only once', async () => {
    const { reasoning: _, ...asked } = asking({ max_tokens: 60 });
    for (const speculation of [false, 'auto'] as const) {
      const stream = await runtime().createCompletion({ ...asked, speculation, stream: true });
      const ids: number[] = [];
      let [thought, said, ended] = ['', '', 0];
      for await (const { choices } of stream) {
        const { delta, token_ids } = choices[0]!;
        ids.push(...(token_ids ?? []));
        thought += delta.reasoning ?? '';
        said += delta.content ?? '';
        if (ended === 0 && ids.length >= 5) {
          ended = ids.length;
          expect(await stream.endReasoning()).toBe(true);
        }
      }
      const end = await runtime().tokenize(reasoningEnd(REASONING_FORMATS.think), { parseSpecial: true });
      const at = ids.findIndex((_, i) => end.every((id, k) => ids[i + k] === id));
      expect(at).toBeGreaterThanOrEqual(ended);
      expect(at).toBeLessThan(ended + 20); // tokens of the step that ran, and the rest of a character
      expect(thought.trim()).toBe((await runtime().detokenize(ids.slice(0, at))).trim());
      expect(said.length).toBeGreaterThan(0);
      expect(ids).toHaveLength(60);
      expect(await stream.endReasoning()).toBe(false);
    }
  });

  it('endReasoning ends the reasoning of an answer of another process: isolated, of a server, in a pool', async () => {
    const server = await serve(runtime(), { port: 0 });
    onTestFinished(() => server.close());
    await using isolated = await createRuntime({ threads: 1, isolate: true });
    // The other process must not be done with the answer before the word to end its reasoning arrives.
    const { reasoning: _, ...asked } = asking({ max_tokens: 300 });
    const remote = connect({ baseUrl: server.url });
    for (const service of [isolated, remote, createPool([remote])]) {
      const stream = await service.createCompletion({ ...asked, stream: true });
      let [said, ended] = ['', false];
      for await (const { choices } of stream) {
        const { delta } = choices[0]!;
        if (!ended && delta.reasoning) ended = await stream.endReasoning();
        said += delta.content ?? '';
      }
      expect(ended).toBe(true);
      expect(said.length).toBeGreaterThan(0);
      expect(await stream.endReasoning()).toBe(false);
    }
  });

  it('endReasoning is false for an answer without reasoning, and for beams', async () => {
    const { reasoning: _, ...asked } = asking({ max_tokens: 8 });
    for (const fields of [
      { chat_template: PLAIN },
      { use_beam_search: true, n: 2, temperature: 0, seed: null },
    ]) {
      const stream = await runtime().createCompletion({ ...asked, ...fields, stream: true });
      const ended = [];
      for await (const _ of stream) ended.push(await stream.endReasoning());
      expect(ended).not.toContain(true);
    }
  });

  it('is ended over HTTP by the id of a running stream of the same client', async () => {
    const tokens = ['one', 'other'].map((token) => ({ token, scopes: ['complete' as const] }));
    const handler = createHandler(runtime(), { tokens });
    const post = (path: string, body: object, token = 'one'): Promise<Response> =>
      handler(
        new Request(`http://x${path}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}` },
          body: JSON.stringify(body),
        }),
      );
    const control = async (id: string, token?: string): Promise<object> => {
      const body = { id, action: 'reasoning_end', model: 'x' };
      return (await (await post('/v1/chat/completions/control', body, token)).json()) as object;
    };
    const { reasoning: _, ...asked } = asking({ max_tokens: 60, stream: true });
    const response = await post('/v1/chat/completions', { ...asked, stream: true, reasoning_control: true });
    const answers: object[] = [];
    let said = '';
    let id = '';
    for await (const part of response.body!.pipeThrough(new TextDecoderStream()))
      for (const line of part.split('\n')) {
        if (!line.startsWith('data: {')) continue;
        const chunk = JSON.parse(line.slice(6)) as ChatCompletionChunk;
        said += chunk.choices[0]!.delta.content ?? '';
        id = chunk.id;
        if (answers.length > 0 || !chunk.choices[0]!.delta.reasoning) continue;
        answers.push(await control(id, 'other'), await control(id));
      }
    const none = { success: false, message: 'no stream with this id is running' };
    expect(answers).toEqual([none, { success: true }]);
    expect(said.length).toBeGreaterThan(0);
    expect(await control(id)).toEqual(none);
    const wrong = await post('/v1/chat/completions/control', { id, action: 'stop' });
    expect([wrong.status, await wrong.text()]).toEqual([400, expect.stringContaining('reasoning_end')]);
  });

  it('is the budget of messages and responses', async () => {
    const common = { chat_template: OPENED, seed: 4, logit_bias: NO_END, stream: false } as const;
    const message = await runtime().createMessage({
      messages: [{ role: 'user', content: 'Hi' }],
      max_tokens: 30,
      thinking: { type: 'enabled', budget_tokens: 4 },
      ...common,
    });
    expect(message.content.map(({ type }) => type)).toEqual(['thinking', 'text']);
    const response = await runtime().createResponse({
      input: 'Hi',
      max_output_tokens: 30,
      reasoning: { max_tokens: 4 },
      ...common,
    });
    expect(response.usage!.output_tokens_details.reasoning_tokens).toBe(4);
  });
});
