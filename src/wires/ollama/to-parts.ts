/** The chunks of a chat or text completion -> parts of an answer of Ollama's API: text, thoughts and whole calls, at last numbers. */
import type { AnswerStream } from '../../answer/index.ts';
import { parseJson } from '../../common/index.ts';
import type {
  ChatCompletionChunk,
  JsonObject,
  OllamaCallOutput,
  OllamaPart,
  TextCompletionChunk,
  TokenLogprob,
  ToolCallDelta,
  Usage,
} from '../../protocol/index.ts';
import { translate } from '../translate.ts';

export type Piece = {
  readonly content: string;
  readonly thinking?: string;
  readonly calls?: OllamaCallOutput[];
};

/** How an endpoint shows a piece. */
export type Form<Part extends OllamaPart> = (piece: Piece) => Omit<Part, keyof OllamaPart>;

/** Milliseconds of a clock: when the request came, and when its model was there. */
export type Times = { readonly began: number; readonly loaded: number };

export function toParts<Part extends OllamaPart>(
  chunks: AnswerStream<ChatCompletionChunk> | AnswerStream<TextCompletionChunk>,
  model: string,
  form: Form<Part>,
  times: Times,
): AsyncIterableIterator<Part> {
  const source = chunks as AnswerStream<ChatCompletionChunk | TextCompletionChunk>;
  return translate(source, new OllamaWriter(model, form, times));
}

class OllamaWriter<Part extends OllamaPart> {
  readonly #model: string;
  readonly #form: Form<Part>;
  readonly #times: Times;
  #first: number | null = null; // when the first token came
  #open: { id: string; index: number; name: string; text: string } | null = null; // the call that is being written
  #reason: 'stop' | 'length' = 'stop';
  #usage: Usage | null = null;

  constructor(model: string, form: Form<Part>, times: Times) {
    this.#model = model;
    this.#form = form;
    this.#times = times;
  }

  push(chunk: ChatCompletionChunk | TextCompletionChunk): Part[] {
    this.#usage = chunk.usage ?? this.#usage;
    const [choice] = chunk.choices;
    if (!choice) return [];
    const { content, thinking, deltas, logprobs } = 'delta' in choice ? fromDelta(choice) : fromText(choice);
    const calls = deltas.flatMap((delta) => this.#addToCall(delta));
    if (choice.finish_reason) this.#reason = choice.finish_reason === 'length' ? 'length' : 'stop';
    if (content || thinking || deltas.length > 0) this.#first ??= performance.now();
    if (!content && !thinking && calls.length === 0 && logprobs.length === 0) return [];
    const piece = { content, ...(thinking ? { thinking } : {}), ...(calls.length > 0 ? { calls } : {}) };
    return [this.#part(piece, { done: false, ...(logprobs.length > 0 ? { logprobs } : {}) })];
  }

  finish(): Part[] {
    const calls = this.#closeCall();
    const { began, loaded } = this.#times;
    const end = performance.now();
    const first = this.#first ?? end;
    const last = this.#part(
      { content: '' },
      {
        done: true,
        done_reason: this.#reason,
        total_duration: nanoseconds(end - began),
        load_duration: nanoseconds(loaded - began),
        prompt_eval_count: this.#usage?.prompt_tokens ?? 0,
        prompt_eval_duration: nanoseconds(first - loaded),
        eval_count: this.#usage?.completion_tokens ?? 0,
        eval_duration: nanoseconds(end - first),
      },
    );
    return calls.length > 0 ? [this.#part({ content: '', calls }, { done: false }), last] : [last];
  }

  #part(piece: Piece, more: Omit<OllamaPart, 'model' | 'created_at'>): Part {
    const head = { model: this.#model, created_at: new Date().toISOString() };
    return { ...head, ...this.#form(piece), ...more } as Part;
  }

  /** The call before, if this one begins. */
  #addToCall({ index, id, function: called }: ToolCallDelta): OllamaCallOutput[] {
    const before = this.#open?.index === index ? [] : this.#closeCall();
    this.#open ??= { id: id ?? '', index, name: called?.name ?? '', text: '' };
    this.#open.text += called?.arguments ?? '';
    return before;
  }

  /** A call whose arguments broke off is none. */
  #closeCall(): OllamaCallOutput[] {
    if (!this.#open) return [];
    const { id, index, name, text } = this.#open;
    this.#open = null;
    const args = toObject(text || '{}');
    return args ? [{ id, function: { index, name, arguments: args } }] : [];
  }
}

type Read = {
  readonly content: string;
  readonly thinking: string;
  readonly deltas: readonly ToolCallDelta[];
  readonly logprobs: TokenLogprob[];
};

function fromDelta({ delta, logprobs }: ChatCompletionChunk['choices'][number]): Read {
  const { content, reasoning, reasoning_content, tool_calls } = delta;
  return {
    content: content ?? '',
    thinking: reasoning ?? reasoning_content ?? '',
    deltas: tool_calls ?? [],
    logprobs: logprobs?.content ?? [],
  };
}

function fromText({ text, logprobs }: TextCompletionChunk['choices'][number]): Read {
  const scores = (logprobs?.tokens ?? []).map((token, i): TokenLogprob => {
    const top = Object.entries((logprobs!.top_logprobs?.[i] ?? {}) as Record<string, number>);
    return {
      ...score(token, logprobs!.token_logprobs[i] ?? 0),
      top_logprobs: top.map(([other, logprob]) => score(other, logprob)),
    };
  });
  return { content: text, thinking: '', deltas: [], logprobs: scores };
}

function score(token: string, logprob: number): Omit<TokenLogprob, 'top_logprobs'> {
  return { token, logprob, bytes: [...Buffer.from(token)] };
}

function toObject(text: string): JsonObject | null {
  const value = parseJson(text);
  return typeof value === 'object' && value !== null ? (value as JsonObject) : null;
}

export function nanoseconds(ms: number): number {
  return Math.max(0, Math.round(ms * 1e6));
}
