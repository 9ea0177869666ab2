/** `prompt_logprobs` of a request -> the log-probabilities of its prompt's tokens, once for all choices. */
import { createPromptScores } from '../../sampling/index.ts';
import type { Feature } from '../feature.ts';
import type { OpenedRequest } from '../open-request.ts';

export function promptScores({ request, prompt, model }: OpenedRequest): Feature {
  const { tokenizer } = model;
  const scores = createPromptScores(request.prompt_logprobs!, prompt.ids, tokenizer.vocabSize);
  return {
    part: ({ index }) => (index === 0 ? { extras: { promptScores: scores } } : null),
    fields: () => ({ prompt_logprobs: scores.entries(tokenizer) }),
  };
}
