/** A request and functions of the app -> answers of the model and calls of the functions, in turns, until it answers without a call. */

import { abortedBy, errorAt, messageOf, OnpolicyError } from '../../errors.ts';
import {
  type Arguments,
  type ChatCompletionChunk,
  type ChatCompletionRequest,
  checkArguments,
  type FinishReason,
  type Message,
  type ResponseFunctionToolCall,
  type ResponseMessage,
  type Tool,
  withDefaults,
} from '../../protocol/index.ts';
import { type ChatCompletionStream, type Completions, WholeAnswer } from '../../protocol/service/index.ts';
import { deadline } from './deadline.ts';
import { checkSchema, readArguments } from './fitting-arguments.ts';

/** A function of the app that the model may call. */
export type AppTool = Omit<Arguments['AppTool'], 'run' | 'parameters'> & {
  readonly parameters: Readonly<Record<string, unknown>>;
  /**
   * Returns a text, or a value that becomes JSON. An error that it throws is told to the model. `signal` fires when the time of the call is up or
   * the loop ends.
   */
  // biome-ignore lint/suspicious/noExplicitAny: the arguments fit the schema, which TypeScript does not read
  readonly run: (args: any, context: { readonly signal: AbortSignal; readonly callId: string }) => unknown;
};

/** A call that the model makes, with arguments that fit the schema of the tool. */
export type AppToolCall = {
  readonly id: string;
  readonly name: string;
  readonly arguments: object;
  /** Number of the answer that makes it, from 0. */
  readonly step: number;
};

/** Options of {@link runTools}. */
export type RunToolsOptions = Omit<Arguments['RunToolsOptions'], 'tools' | 'onCall'> & {
  readonly tools: Readonly<Record<string, AppTool>>;
  /** Is asked before each call: false or a text refuses it, and the model is told the text. */
  readonly onCall?:
    | ((call: AppToolCall) => undefined | boolean | string | Promise<undefined | boolean | string>)
    | undefined;
};

/** A chat completion request whose tools are functions of the app. */
export type ToolLoopRequest = Omit<
  ChatCompletionRequest,
  'tools' | 'functions' | 'function_call' | 'n' | 'stream' | 'use_beam_search'
>;

/** An event of the loop. Events come in the order in which they happen. */
export type ToolLoopEvent =
  /** A part of an answer. */
  | { readonly type: 'chunk'; readonly step: number; readonly chunk: ChatCompletionChunk }
  /** A function is about to be called. */
  | { readonly type: 'call'; readonly call: AppToolCall }
  /** The result of a call, as the model gets it. */
  | {
      readonly type: 'result';
      readonly step: number;
      readonly callId: string;
      readonly name: string;
      readonly content: string;
      readonly isError: boolean;
    };

/** The end of a loop. */
export type ToolLoopResult = {
  /** The text of the last answer. */
  readonly content: string;
  /** The reason why the last answer ended, or `max_steps` if it made calls and no further one was allowed. */
  readonly finish: FinishReason | 'max_steps';
  /** The conversation: the messages of the request, then all answers and results. A later request can go on from there. */
  readonly messages: readonly Message[];
  /** Number of answers. */
  readonly steps: number;
  /** Sums over all answers. */
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number };
};

/** Fields that the loop sets itself. */
const OWN_FIELDS = ['tools', 'functions', 'function_call', 'n', 'stream', 'use_beam_search'] as const;

/**
 * Lets a model call functions of this program until it answers without a call. Wrong arguments, errors, refusals and calls that take too long
 * are told to the model, which goes on. A forced `tool_choice` forces the first answer only.
 *
 * ```ts
 * const run = runTools(runtime, { messages }, { tools: { now: { parameters: { type: 'object' }, run: () => new Date() } } });
 * for await (const event of run) if (event.type === 'chunk') process.stdout.write(event.chunk.choices[0]?.delta.content ?? '');
 * const { content, messages: conversation } = await run.result();
 * ```
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options, and for fields of the request that the loop sets itself
 */
export function runTools(
  service: Pick<Completions, 'createCompletion'>,
  request: ToolLoopRequest,
  options: RunToolsOptions,
): ToolRun {
  checkArguments('RunToolsOptions', options);
  for (const field of OWN_FIELDS)
    if ((request as ChatCompletionRequest)[field] !== undefined)
      throw errorAt(field, 'INVALID_REQUEST', 'expected no value: the loop sets it');
  return new ToolRun(service, request, options);
}

/** A running loop. Read its events once, or only its result. Leaving the events ends it. */
export class ToolRun implements AsyncIterable<ToolLoopEvent> {
  readonly #events: AsyncGenerator<ToolLoopEvent, ToolLoopResult, undefined>;
  #result: Promise<ToolLoopResult> | null = null;
  #isRead = false;

  /** @internal Use `runTools`. */
  constructor(
    service: Pick<Completions, 'createCompletion'>,
    request: ToolLoopRequest,
    options: RunToolsOptions,
  ) {
    this.#events = loop(service, request, options);
  }

  /** The events, in order. */
  async *[Symbol.asyncIterator](): AsyncIterator<ToolLoopEvent> {
    if (this.#isRead) throw new OnpolicyError('CONFLICT', 'the events of this run are read already');
    this.#isRead = true;
    let hasEnded = false;
    try {
      for (;;) {
        const next = await this.#events.next();
        if (next.done) {
          hasEnded = true;
          this.#result = Promise.resolve(next.value);
          return;
        }
        yield next.value;
      }
    } catch (error) {
      hasEnded = true;
      this.#result = Promise.reject(error);
      this.#result.catch(() => {});
      throw error;
    } finally {
      if (!hasEnded) {
        this.#result = Promise.reject(new OnpolicyError('ABORTED', 'the events of this run were left'));
        this.#result.catch(() => {});
        await this.#events.return(undefined as never);
      }
    }
  }

  /** Runs the loop to its end if nobody reads its events. @throws OnpolicyError as `createCompletion` does; `ABORTED` if the events were left */
  async result(): Promise<ToolLoopResult> {
    if (this.#result) return await this.#result;
    if (this.#isRead) throw new OnpolicyError('CONFLICT', 'read the events of this run to their end first');
    for await (const _ of this); // nobody reads the events
    return await this.#result!;
  }
}

async function* loop(
  service: Pick<Completions, 'createCompletion'>,
  request: ToolLoopRequest,
  options: RunToolsOptions,
): AsyncGenerator<ToolLoopEvent, ToolLoopResult, undefined> {
  const { tools, signal, onCall } = options;
  const limits = withDefaults('RunToolsOptions', options);
  for (const [name, { parameters }] of Object.entries(tools)) await checkSchema(name, parameters);
  const declared = Object.entries(tools).map(([name, tool]) => toTool(name, tool));
  const messages: Message[] = [...request.messages];
  const usage = { prompt_tokens: 0, completion_tokens: 0 };
  const ended = new AbortController(); // ends the calls that run when the loop is left
  const running = signal ? AbortSignal.any([signal, ended.signal]) : ended.signal;
  try {
    for (let step = 0; ; step++) {
      const { stream_options: _, tool_choice, ...fields } = request;
      const asked = {
        ...fields,
        messages: [...messages],
        tools: declared,
        ...(step === 0 && tool_choice !== undefined ? { tool_choice } : {}),
        stream: true as const,
        stream_options: { include_usage: true },
      };
      const stream: ChatCompletionStream = await service.createCompletion(asked, { signal: running });
      const whole = new WholeAnswer();
      for await (const chunk of stream) {
        whole.add(chunk);
        yield { type: 'chunk', step, chunk };
      }
      const { choices, usage: used } = whole.whole();
      const { message, finish_reason: finish } = choices[0]!;
      const calls = message.tool_calls.filter((call) => call.type === 'function');
      const content = message.content ?? '';
      usage.prompt_tokens += used?.prompt_tokens ?? 0;
      usage.completion_tokens += used?.completion_tokens ?? 0;
      messages.push(toMessage(message));
      const isDone = calls.length === 0 || finish === 'length'; // a cut call must not be made
      if (isDone) return { content, finish, messages, steps: step + 1, usage };
      const made: Promise<CallEnd>[] = [];
      for (const call of calls) {
        const begun = await begin(call, step, tools, onCall);
        if ('call' in begun) yield { type: 'call', call: begun.call };
        const end = 'refusal' in begun ? Promise.resolve(begun.refusal) : callTool(begun, limits, running);
        end.catch(() => {}); // it may reject while a later call begins, before all are awaited below
        made.push(end);
      }
      for (const [i, end] of (await Promise.all(made)).entries()) {
        const { id, function: called } = calls[i]!;
        messages.push({ role: 'tool', tool_call_id: id, content: end.content });
        yield { type: 'result', step, callId: id, name: called.name, ...end };
      }
      if (running.aborted) throw abortedBy(running);
      if (step + 1 === limits.maxSteps)
        return { content, finish: 'max_steps', messages, steps: step + 1, usage };
    }
  } finally {
    ended.abort(new OnpolicyError('ABORTED', 'the loop has ended'));
  }
}

type CallEnd = { readonly content: string; readonly isError: boolean };
type Begun = { readonly call: AppToolCall; readonly tool: AppTool };

function failed(content: string): CallEnd {
  return { content: `error: ${content}`, isError: true };
}

/** Reads a call. Returns what the model is told if it cannot be made. */
async function begin(
  { id, function: { name, arguments: text } }: ResponseFunctionToolCall,
  step: number,
  tools: RunToolsOptions['tools'],
  onCall: RunToolsOptions['onCall'],
): Promise<Begun | { readonly refusal: CallEnd }> {
  const tool = Object.hasOwn(tools, name) ? tools[name]! : null;
  if (!tool) {
    const known = Object.keys(tools).join(', ') || 'none';
    return { refusal: failed(`there is no tool ${JSON.stringify(name)}; the tools are ${known}`) };
  }
  const read = await readArguments(text, tool.parameters);
  if ('fault' in read) return { refusal: failed(read.fault) };
  const call = { id, name, arguments: read.value, step };
  const verdict = await onCall?.(call);
  if (verdict === false) return { refusal: failed('the user refused this call') };
  if (typeof verdict === 'string') return { refusal: failed(`the user refused this call: ${verdict}`) };
  return { call, tool };
}

/** Calls a function, waits at most for its time limit, and returns what the model is told. */
async function callTool(
  { call, tool }: Begun,
  { toolTimeoutMs, maxResultLength }: { readonly toolTimeoutMs: number; readonly maxResultLength: number },
  signal: AbortSignal,
): Promise<CallEnd> {
  const ms = tool.timeoutMs ?? toolTimeoutMs;
  using limit = deadline(signal, ms);
  try {
    const running = (async () => await tool.run(call.arguments, { signal: limit.signal, callId: call.id }))();
    const value = await Promise.race([running, limit.reached]);
    const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null');
    return { content: shortened(text, maxResultLength), isError: false };
  } catch (error) {
    if (signal.aborted) throw abortedBy(signal);
    return failed(shortened(messageOf(error), maxResultLength));
  }
}

function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most)}\n[cut: the first ${most} of ${text.length} characters]`;
}

function toTool(name: string, { description, parameters, strict }: AppTool): Tool {
  const own = {
    ...(description === undefined ? {} : { description }),
    ...(strict === undefined ? {} : { strict }),
  };
  return { type: 'function', function: { name, parameters, ...own } };
}

function toMessage({ content, reasoning, tool_calls: calls }: ResponseMessage): Message {
  return {
    role: 'assistant',
    content: calls.length > 0 ? content : (content ?? ''),
    ...(reasoning ? { reasoning } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}
