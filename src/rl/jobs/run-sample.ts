/** A step `sample` of a training run -> a text completion of its model, and back. */
import type {
  RunRequest,
  TextCompletion,
  TextCompletionRequest,
  TrainingRunResult,
} from '../../protocol/index.ts';

/** Returns the request that continues the prompt, and a function that reads its answer. */
export function sampleOf(
  model: string,
  { prompt, num_samples, sampling_params, prompt_logprobs }: RunRequest,
): { readonly request: TextCompletionRequest; readonly read: (answer: TextCompletion) => TrainingRunResult } {
  const tokens = prompt!.chunks.flatMap((chunk) => chunk.tokens);
  const { max_tokens, temperature, top_p, top_k, seed, stop } = sampling_params ?? {};
  const request = {
    model,
    prompt: tokens,
    n: num_samples ?? 1,
    max_tokens,
    temperature,
    top_p,
    top_k,
    seed,
    stop: stop as TextCompletionRequest['stop'],
    logprobs: 0,
    return_token_ids: true,
    ...(prompt_logprobs ? { prompt_logprobs: 0 } : {}),
  };
  const read = ({ choices }: TextCompletion): TrainingRunResult => ({
    sequences: choices.map(({ token_ids, logprobs, finish_reason }) => ({
      tokens: token_ids!,
      logprobs: logprobs!.token_logprobs,
      stop_reason: finish_reason,
    })),
    ...(prompt_logprobs
      ? {
          prompt_logprobs: choices[0]!.prompt_logprobs!.map((place, i) =>
            place ? (place[tokens[i]!]?.logprob ?? null) : null,
          ),
        }
      : {}),
  });
  return { request, read };
}
