/** `logits_processors` of a request -> the hook of each choice, which edits its rows of logits. */
import { createLogitsHooks } from '../../sampling/index.ts';
import type { Feature } from '../feature.ts';
import type { OpenedRequest } from '../open-request.ts';

export function logitsHooks({ request, textIds, model }: OpenedRequest): Feature {
  const hooks = createLogitsHooks(request, textIds, model.tokenizer.vocabSize);
  return { part: ({ index }) => ({ extras: { hook: hooks[index]! } }) };
}
