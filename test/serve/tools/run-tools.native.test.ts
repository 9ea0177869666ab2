/** The loop of answers and calls on a service in memory: what is called, what the model is told, and how it ends. */
import { describe, expect, it } from 'vitest';
import type { ChatCompletionChunk, ChatCompletionRequest } from '../../../src/protocol/index.ts';
import {
  type AppTool,
  type RunToolsOptions,
  runTools,
  type ToolLoopEvent,
} from '../../../src/serve/tools/index.ts';

type Turn = string | readonly (readonly [name: string, args: string])[];

/** A service whose answers are these turns, and the requests that it got. */
function scripted(...turns: readonly Turn[]) {
  const asked: ChatCompletionRequest[] = [];
  const chunk = (delta: object, finish_reason: string | null, usage?: object) =>
    ({ choices: [{ index: 0, delta, finish_reason }], ...(usage ? { usage } : {}) }) as ChatCompletionChunk;
  async function* stream(turn: Turn) {
    if (typeof turn === 'string') {
      for (const word of turn.split(/(?<= )/)) yield chunk({ content: word }, null);
      yield chunk({}, turn === 'cut' ? 'length' : 'stop');
    } else {
      for (const [index, [name, text]] of turn.entries()) {
        yield chunk({ tool_calls: [{ index, id: `c${index}`, type: 'function', function: { name } }] }, null);
        for (const piece of text.match(/.{1,5}/gs) ?? [])
          yield chunk({ tool_calls: [{ index, function: { arguments: piece } }] }, null);
      }
      yield chunk({}, 'tool_calls');
    }
    yield {
      choices: [],
      usage: { prompt_tokens: 10, completion_tokens: 3 },
    } as unknown as ChatCompletionChunk;
  }
  const createCompletion = async (request: ChatCompletionRequest, { signal }: { signal?: AbortSignal }) => {
    signal?.throwIfAborted();
    asked.push(request);
    return stream(turns[asked.length - 1]!);
  };
  return { service: { createCompletion } as never, asked };
}

const number = { type: 'object', properties: { n: { type: 'integer', minimum: 0 } }, required: ['n'] };
const double: AppTool = { parameters: number, run: ({ n }: { n: number }) => 2 * n };
const messages = [{ role: 'user' as const, content: 'Go.' }];

async function events(run: AsyncIterable<ToolLoopEvent>): Promise<ToolLoopEvent[]> {
  const all: ToolLoopEvent[] = [];
  for await (const event of run) all.push(event);
  return all;
}

/** Returns the result of a call, as the model gets it, if the call is the only one of its answer. */
async function told(tools: RunToolsOptions['tools'], call: readonly [string, string], more: object = {}) {
  const { service, asked } = scripted([call], 'Done.');
  await runTools(service, { messages }, { tools, ...more }).result();
  return asked[1]!.messages.at(-1)!.content;
}

describe('runTools', () => {
  it('calls functions and goes on until there is an answer', async () => {
    const { service, asked } = scripted(
      [
        ['double', '{"n": 4}'],
        ['double', '{"n": 5}'],
      ],
      'Eight and ten.',
    );
    const run = runTools(service, { messages, seed: 1, tool_choice: 'required' }, { tools: { double } });
    const seen = await events(run);
    expect(seen.flatMap((one) => (one.type === 'chunk' ? [] : [one]))).toEqual([
      { type: 'call', call: { id: 'c0', name: 'double', arguments: { n: 4 }, step: 0 } },
      { type: 'call', call: { id: 'c1', name: 'double', arguments: { n: 5 }, step: 0 } },
      { type: 'result', step: 0, callId: 'c0', name: 'double', content: '8', isError: false },
      { type: 'result', step: 0, callId: 'c1', name: 'double', content: '10', isError: false },
    ]);
    const result = await run.result();
    expect(result).toMatchObject({ content: 'Eight and ten.', finish: 'stop', steps: 2 });
    expect(result.usage).toEqual({ prompt_tokens: 20, completion_tokens: 6 });
    expect(result.messages).toEqual([
      ...asked[1]!.messages,
      { role: 'assistant', content: 'Eight and ten.' },
    ]);
    expect(asked[1]!.messages.slice(1).map(({ role, content }) => [role, content])).toEqual([
      ['assistant', null],
      ['tool', '8'],
      ['tool', '10'],
    ]);
    expect(asked.map(({ tool_choice, seed, stream }) => [tool_choice, seed, stream])).toEqual([
      ['required', 1, true],
      [undefined, 1, true],
    ]);
    await expect(events(run)).rejects.toThrow('read already');
  });

  it('makes the calls of an answer at the same time', async () => {
    let open = 0;
    let most = 0;
    const slow: AppTool = {
      parameters: { type: 'object' },
      run: async () => {
        most = Math.max(most, ++open);
        await new Promise((resolve) => setTimeout(resolve, 20));
        open -= 1;
      },
    };
    const { service, asked } = scripted(
      [
        ['slow', '{}'],
        ['slow', ''],
        ['slow', '{}'],
      ],
      'Done.',
    );
    await runTools(service, { messages }, { tools: { slow } }).result();
    expect(most).toBe(3);
    expect(asked[1]!.messages.at(-1)!.content).toBe('null');
  });

  it.each<[string, readonly [string, string], string]>([
    ['an unknown tool', ['constructor', '{}'], 'error: there is no tool "constructor"; the tools are double'],
    ['no JSON', ['double', '{"n": '], 'error: the arguments are not JSON'],
    ['no object', ['double', '[1]'], 'error: the arguments are not a JSON object'],
    [
      'a wrong type',
      ['double', '{"n": "4"}'],
      'error: the arguments do not fit the schema of the tool, behind: {"n":',
    ],
    [
      'a wrong value',
      ['double', '{"n": -1}'],
      'error: the arguments do not fit the schema of the tool, behind: {"n":',
    ],
    [
      'a missing field',
      ['double', '{}'],
      'error: the arguments do not fit the schema of the tool, behind: {',
    ],
  ])('tells the model of %s', async (_, call, expected) => {
    expect(await told({ double }, call)).toBe(expected);
  });

  it('tells the model of a tool that throws, hangs, or answers too much', async () => {
    const parameters = { type: 'object' };
    const call = ['tool', '{}'] as const;
    const thrown = () => {
      throw new Error('no such file');
    };
    expect(await told({ tool: { parameters, run: thrown } }, call)).toBe('error: no such file');
    let reason: unknown;
    const hanging: AppTool = {
      parameters,
      run: (_, { signal }) =>
        new Promise(() => signal.addEventListener('abort', () => (reason = signal.reason))),
    };
    expect(await told({ tool: hanging }, call, { toolTimeoutMs: 30 })).toBe('error: no result within 30 ms');
    expect(reason).toMatchObject({ code: 'TIMEOUT' });
    expect(await told({ tool: { ...hanging, timeoutMs: 10 } }, call)).toBe('error: no result within 10 ms');
    const large = await told({ tool: { parameters, run: () => 'x'.repeat(10_000_000) } }, call);
    expect(large).toBe(`${'x'.repeat(32_768)}\n[cut: the first 32768 of 10000000 characters]`);
    expect(await told({ tool: { parameters, run: () => 'abcdef' } }, call, { maxResultLength: 3 })).toContain(
      'abc\n[cut',
    );
    const circle: Record<string, unknown> = {};
    circle['self'] = circle;
    expect(await told({ tool: { parameters, run: () => circle } }, call)).toMatch(/^error: Converting/);
  });

  it('asks before each call, and tells of a refusal', async () => {
    const seen: unknown[] = [];
    const answers = [true, undefined, false, 'not today'];
    const { service, asked } = scripted(
      Array.from({ length: 4 }, () => ['double', '{"n": 1}'] as const),
      'ok',
    );
    const onCall: RunToolsOptions['onCall'] = (call) => {
      seen.push(call);
      return answers[seen.length - 1];
    };
    await runTools(service, { messages }, { tools: { double }, onCall }).result();
    expect(asked[1]!.messages.slice(2).map(({ content }) => content)).toEqual([
      '2',
      '2',
      'error: the user refused this call',
      'error: the user refused this call: not today',
    ]);
    expect(seen[0]).toEqual({ id: 'c0', name: 'double', arguments: { n: 1 }, step: 0 });
    const broken = scripted([['double', '{"n": 1}']]);
    const failing = () => {
      throw new Error('a bug of the app');
    };
    const run = runTools(broken.service, { messages }, { tools: { double }, onCall: failing });
    await expect(run.result()).rejects.toThrow('a bug of the app');
  });

  it('ends after the most steps, and does not make a call that was cut', async () => {
    const calls = [['double', '{"n": 1}']] as const;
    const { service, asked } = scripted(calls, calls, calls);
    const result = await runTools(service, { messages }, { tools: { double }, maxSteps: 2 }).result();
    expect(result).toMatchObject({ finish: 'max_steps', steps: 2 });
    expect(result.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'tool',
    ]);
    expect(asked).toHaveLength(2);
    const cut = scripted('cut');
    expect(await runTools(cut.service, { messages }, { tools: {} }).result()).toMatchObject({
      finish: 'length',
    });
  });

  it('ends when its signal fires, in an answer, in a call and before it begins', async () => {
    for (const when of ['chunk', 'call'] as const) {
      const { service } = scripted([['wait', '{}']], 'Done.');
      const controller = new AbortController();
      let wasTold = false;
      const wait: AppTool = {
        parameters: { type: 'object' },
        run: (_, { signal }) =>
          new Promise(() => {
            signal.addEventListener('abort', () => (wasTold = true));
            controller.abort();
          }),
      };
      const run = runTools(service, { messages }, { tools: { wait }, signal: controller.signal });
      const reading = (async () => {
        for await (const { type } of run) if (when === 'chunk' && type === 'chunk') controller.abort();
      })();
      await expect(reading).rejects.toMatchObject({ code: 'ABORTED' });
      await expect(run.result()).rejects.toMatchObject({ code: 'ABORTED' });
      expect(wasTold).toBe(when === 'call');
    }
    const late = runTools(scripted('x').service, { messages }, { tools: {}, signal: AbortSignal.abort() });
    await expect(late.result()).rejects.toThrow();
  });

  it('ends its calls when its reader leaves', async () => {
    let signal: AbortSignal | null = null;
    const wait: AppTool = {
      parameters: { type: 'object' },
      run: (_, context) => {
        ({ signal } = context);
        return 'x';
      },
    };
    const run = runTools(scripted([['wait', '{}']], 'a b c').service, { messages }, { tools: { wait } });
    for await (const { type } of run) if (type === 'result') break;
    expect(signal!.aborted).toBe(true);
    await expect(run.result()).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('ends a running call when its reader leaves at the next call of the same answer', async () => {
    const signals: AbortSignal[] = [];
    const wait: AppTool = {
      parameters: { type: 'object' },
      run: (_, { signal }) => new Promise(() => signals.push(signal)),
    };
    const turn = [
      ['wait', '{}'],
      ['wait', '{}'],
    ] as const;
    const run = runTools(scripted(turn).service, { messages }, { tools: { wait } });
    let calls = 0;
    for await (const { type } of run) if (type === 'call' && ++calls === 2) break;
    await new Promise(setImmediate); // an error that nothing handles fails the test run
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    await expect(run.result()).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('refuses what the loop sets itself, and names what is wrong with a tool', async () => {
    const { service } = scripted('x');
    const start = (request: object, options: object) => runTools(service, request as never, options as never);
    expect(() => start({ messages, stream: true }, { tools: {} })).toThrow('stream: expected no value');
    expect(() => start({ messages, tools: [] }, { tools: {} })).toThrow('tools: expected no value');
    expect(() => start({ messages }, {})).toThrow('tools: this field is required');
    expect(() => start({ messages }, { tools: { a: { parameters: {} } } })).toThrow('tools.a.run');
    expect(() => start({ messages }, { tools: {}, maxSteps: 0 })).toThrow(
      'maxSteps: expected an integer >= 1',
    );
    const bad = { parameters: { type: 'objekt' }, run: () => 1 };
    await expect(start({ messages }, { tools: { bad } }).result()).rejects.toThrow(/tools\.bad\.parameters/);
  });
});
