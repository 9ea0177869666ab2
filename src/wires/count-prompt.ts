/** A chat completion request -> how many tokens its prompt has, by a service that renders prompts. */
import { OnpolicyError } from '../errors.ts';
import type { ChatCompletionRequest } from '../protocol/index.ts';
import type { CallOptions, Completions } from '../service.ts';

/** Tokens of pictures and sounds count. Those of the answer do not matter. */
export async function countPrompt(
  service: Pick<Completions, 'renderPrompt'>,
  { max_completion_tokens: _, ...request }: ChatCompletionRequest,
  options: CallOptions,
): Promise<number> {
  if (!service.renderPrompt) throw new OnpolicyError('UNSUPPORTED', 'this service has no prompts');
  return (await service.renderPrompt(request, options)).count;
}
