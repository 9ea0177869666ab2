/** Two texts -> a text completion request, and its answer: llama.cpp's `/infill`. */
import {
  type InfillBody,
  PathTranslation,
  type TextCompletion,
  type TextCompletionChunk,
  type TextCompletionRequest,
  type Usage,
} from '../../protocol/index.ts';

/** Translates a checked body. */
export function fromInfill(body: InfillBody): {
  readonly request: TextCompletionRequest;
  readonly paths: PathTranslation;
} {
  const { input_prefix, input_suffix, input_extra: _, n_predict, prompt: __, n: ___, ...rest } = body;
  const max_tokens = n_predict === -1 ? null : (n_predict ?? null);
  const paths = new PathTranslation({
    prompt: 'input_prefix',
    suffix: 'input_suffix',
    max_tokens: 'n_predict',
  });
  const asked = { prompt: input_prefix, suffix: input_suffix, max_tokens, return_token_ids: true };
  return { request: { ...rest, ...asked } as TextCompletionRequest, paths };
}

/** The end of an answer in llama.cpp's words. */
function endOf(
  {
    finish_reason,
    stop_reason = null,
  }: Pick<TextCompletionChunk['choices'][number], 'finish_reason' | 'stop_reason'>,
  usage: Usage | undefined,
): object {
  const isWord = typeof stop_reason === 'string';
  return {
    stop: true,
    stop_type: finish_reason === 'length' ? 'limit' : isWord ? 'word' : 'eos',
    stopping_word: isWord ? stop_reason : '',
    tokens_predicted: usage?.completion_tokens ?? 0,
    tokens_evaluated: usage?.prompt_tokens ?? 0,
    tokens_cached: usage?.prompt_tokens_details?.cached_tokens ?? 0,
    truncated: false,
  };
}

/** Converts an answer. */
export function toInfill({ choices, model, usage }: TextCompletion): object {
  const [choice] = choices;
  const { text, token_ids } = choice!;
  return { index: 0, content: text, tokens: token_ids, model, ...endOf(choice!, usage) };
}

/** Converts the chunks of a stream. The last part says how the answer ended. */
export async function* toInfillParts(
  chunks: AsyncIterable<TextCompletionChunk>,
): AsyncGenerator<object, void, undefined> {
  let end: TextCompletionChunk['choices'][number] | null = null;
  let last: TextCompletionChunk | null = null;
  for await (const chunk of chunks) {
    last = chunk;
    for (const choice of chunk.choices) {
      if (choice.finish_reason !== null) end = choice;
      yield { index: 0, content: choice.text, tokens: choice.token_ids, stop: false };
    }
  }
  if (end && last) yield { index: 0, content: '', tokens: [], model: last.model, ...endOf(end, last.usage) };
}
