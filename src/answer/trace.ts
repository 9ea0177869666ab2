/**
 * A request and its answer -> an OpenTelemetry span, if `@opentelemetry/api` is installed. Names are those of the GenAI semantic
 * conventions, https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/. The span never contains texts.
 */
import type { OnpolicyError } from '../errors.ts';
import type { Usage, ValidChatRequest } from '../protocol/index.ts';
import type { Completion } from './completion.ts';
import { type AnswerHeader, finishReason, toUsage } from './response.ts';

type Attributes = Record<string, string | number | string[]>;

/** The parts of `@opentelemetry/api` that are used. */
type Span = {
  isRecording(): boolean;
  setAttributes(attributes: Attributes): unknown;
  setStatus(status: { code: number; message: string }): unknown;
  end(): void;
};
type Tracer = { startSpan(name: string, options: { kind: number; attributes: Attributes }): Span };

const INTERNAL = 0;
const ERROR = 2;

let tracer: Promise<Tracer | null> | null = null;

function findTracer(): Promise<Tracer | null> {
  tracer ??= import('@opentelemetry/api').then(
    ({ trace }) => trace.getTracer('onpolicy') as Tracer,
    () => null,
  );
  return tracer;
}

/** The span of one request, open until it is disposed of. */
export class RequestTrace implements Disposable {
  readonly #span: Span;
  readonly #answers: (readonly [AnswerHeader, Completion])[] = [];
  #error: OnpolicyError | null = null;

  constructor(span: Span) {
    this.#span = span;
  }

  /** Adds an answer to one prompt of the request. */
  answered(header: AnswerHeader, completion: Completion): void {
    this.#answers.push([header, completion]);
  }

  failed(error: OnpolicyError): void {
    this.#error = error;
  }

  [Symbol.dispose](): void {
    if (this.#span.isRecording()) this.#describe();
    this.#span.end();
  }

  #describe(): void {
    const error = this.#error ?? this.#answers.find(([, { error }]) => error)?.[1].error;
    if (error) {
      this.#span.setAttributes({ 'error.type': error.code });
      this.#span.setStatus({ code: ERROR, message: error.message });
    }
    const [first] = this.#answers;
    if (!first) return;
    const usages = this.#answers.map(([header, completion]) => toUsage(header, completion));
    const sum = (countOf: (usage: Usage) => number): number =>
      usages.reduce((total, usage) => total + countOf(usage), 0);
    this.#span.setAttributes({
      'gen_ai.response.id': first[0].id,
      'gen_ai.response.model': first[0].model,
      'gen_ai.response.finish_reasons': this.#answers.flatMap(reasonsOf),
      'gen_ai.usage.input_tokens': sum((usage) => usage.prompt_tokens),
      'gen_ai.usage.output_tokens': sum((usage) => usage.completion_tokens),
      'gen_ai.usage.cache_read.input_tokens': sum((usage) => usage.prompt_tokens_details?.cached_tokens ?? 0),
    });
  }
}

function reasonsOf([header, { choices }]: readonly [AnswerHeader, Completion]): string[] {
  return choices.map((choice) => {
    choice.catchUp();
    return choice.finish ? finishReason(header, choice) : 'error';
  });
}

/** Starts the span of a request. Returns null without OpenTelemetry. */
export async function beginTrace(
  operation: 'chat' | 'text_completion',
  request: ValidChatRequest,
): Promise<RequestTrace | null> {
  const found = await findTracer();
  if (!found) return null;
  const name = request.model ? `${operation} ${request.model}` : operation;
  return new RequestTrace(
    found.startSpan(name, {
      kind: INTERNAL,
      attributes: { 'gen_ai.operation.name': operation, ...attributesOf(request) },
    }),
  );
}

function attributesOf(request: ValidChatRequest): Attributes {
  const values: Record<string, string | number | string[] | null> = {
    'gen_ai.provider.name': 'onpolicy',
    'gen_ai.request.model': request.model,
    'gen_ai.request.temperature': request.temperature,
    'gen_ai.request.top_p': request.top_p,
    'gen_ai.request.top_k': request.top_k,
    'gen_ai.request.max_tokens': request.max_completion_tokens,
    'gen_ai.request.frequency_penalty': request.frequency_penalty,
    'gen_ai.request.presence_penalty': request.presence_penalty,
    'gen_ai.request.seed': request.seed === null ? null : Number(request.seed),
    'gen_ai.request.choice.count': request.n === 1 ? null : request.n,
    'gen_ai.request.stop_sequences': request.stop.length === 0 ? null : [...request.stop],
    'gen_ai.output.type': request.structured_outputs?.json == null ? 'text' : 'json',
  };
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null)) as Attributes;
}
