/**
 * The chunks of a chat or text completion -> parts of an answer of Ollama's API: text, thoughts, whole calls, and counts in the last part.
 */

import { parseJson } from '../../../common/index.ts';
import type {
  ChatCompletionChunk,
  JsonObject,
  OllamaCallOutput,
  OllamaPart,
  TextCompletionChunk,
  TokenLogprob,
  ToolCallDelta,
  Usage,
} from '../../../protocol/index.ts';
import type { AnswerStream } from '../../../protocol/service/index.ts';
import { translate } from '../translate.ts';

export type Piece = {
  readonly content: string;
  readonly thinking?: string;
  readonly calls?: OllamaCallOutput[];
};

/** Makes the fields of a part that are specific to an endpoint. */
export type Form<Part extends OllamaPart> = (piece: Piece) => Omit<Part, keyof OllamaPart>;

/** Times of the arrival of the request and of the end of loading, in milliseconds of `performance.now()`. */
export type Times = { readonly began: number; readonly loaded: number };

export function toParts<Part extends OllamaPart>(
  chunks: AnswerStream<ChatCompletionChunk> | AnswerStream<TextCompletionChunk>,
  model: string,
  form: Form<Part>,
  { began, loaded }: Times,
): AsyncIterableIterator<Part> {
  let first: number | null = null; // time of the first token
  let open: { id: string; index: number; name: string; text: string } | null = null; // the call that the model is writing
  let reason: 'stop' | 'length' = 'stop';
  let usage: Usage | null = null;
  const part = (piece: Piece, more: Omit<OllamaPart, 'model' | 'created_at'>): Part =>
    ({ model, created_at: new Date().toISOString(), ...form(piece), ...more }) as object as Part;
  /** Ends the open call. Returns no call if its arguments are incomplete. */
  const closeCall = (): OllamaCallOutput[] => {
    if (!open) return [];
    const { id, index, name, text } = open;
    open = null;
    const args = toObject(text || '{}');
    return args ? [{ id, function: { index, name, arguments: args } }] : [];
  };
  /** Adds to the open call. If this delta begins another call, returns the one before it. */
  const addToCall = ({ index, id, function: called }: ToolCallDelta): OllamaCallOutput[] => {
    const before = open?.index === index ? [] : closeCall();
    open ??= { id: id ?? '', index, name: called?.name ?? '', text: '' };
    open.text += called?.arguments ?? '';
    return before;
  };
  return translate(chunks as AnswerStream<ChatCompletionChunk | TextCompletionChunk>, {
    push(chunk) {
      usage = chunk.usage ?? usage;
      const [choice] = chunk.choices;
      if (!choice) return [];
      const { content, thinking, deltas, logprobs } =
        'delta' in choice ? fromDelta(choice) : fromText(choice);
      const calls = deltas.flatMap(addToCall);
      if (choice.finish_reason) reason = choice.finish_reason === 'length' ? 'length' : 'stop';
      if (content || thinking || deltas.length > 0) first ??= performance.now();
      if (!content && !thinking && calls.length === 0 && logprobs.length === 0) return [];
      const piece = { content, ...(thinking ? { thinking } : {}), ...(calls.length > 0 ? { calls } : {}) };
      return [part(piece, { done: false, ...(logprobs.length > 0 ? { logprobs } : {}) })];
    },
    finish() {
      const calls = closeCall();
      const end = performance.now();
      const begun = first ?? end;
      const last = part(
        { content: '' },
        {
          done: true,
          done_reason: reason,
          total_duration: nanoseconds(end - began),
          load_duration: nanoseconds(loaded - began),
          prompt_eval_count: usage?.prompt_tokens ?? 0,
          prompt_eval_duration: nanoseconds(begun - loaded),
          eval_count: usage?.completion_tokens ?? 0,
          eval_duration: nanoseconds(end - begun),
        },
      );
      return calls.length > 0 ? [part({ content: '', calls }, { done: false }), last] : [last];
    },
  });
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
