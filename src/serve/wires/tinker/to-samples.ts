/** A request for samples -> a text completion request, and the caller's names of its fields. */
import {
  PathTranslation,
  type TextCompletionRequest,
  type TinkerSampleBody,
} from '../../../protocol/index.ts';

/** Fields of a text completion request that have the same name in the sampling parameters. */
const SAME = ['max_tokens', 'temperature', 'top_p', 'top_k', 'seed', 'stop'] as const;

/** Translates a checked body. `model`: what answers. */
export function toSamples(
  { prompt, num_samples, sampling_params, prompt_logprobs, topk_prompt_logprobs }: TinkerSampleBody,
  model: string,
): { readonly request: TextCompletionRequest & { prompt: number[] }; readonly paths: PathTranslation } {
  const { stop, max_tokens = null, ...params } = sampling_params ?? {};
  const isOfTokens = Array.isArray(stop) && typeof stop[0] === 'number';
  const top = topk_prompt_logprobs ?? 0;
  const request = {
    model,
    prompt: prompt.chunks.flatMap(({ tokens = [] }) => tokens),
    n: params.temperature === 0 ? 1 : (num_samples ?? 1), // all answers of temperature 0 are the same
    max_tokens,
    ...params,
    ...(isOfTokens ? { stop_token_ids: stop } : { stop }),
    logprobs: 0,
    return_token_ids: true,
    ...(prompt_logprobs || top > 0 ? { prompt_logprobs: top } : {}),
  } as TextCompletionRequest & { prompt: number[] };
  const paths = new PathTranslation({
    ...Object.fromEntries(SAME.map((field) => [field, `sampling_params.${field}`])),
    prompt: 'prompt.chunks',
    n: 'num_samples',
    stop_token_ids: 'sampling_params.stop',
    prompt_logprobs: 'topk_prompt_logprobs',
  });
  return { request, paths };
}
