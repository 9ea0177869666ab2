/** A chat completion request -> the number of tokens of its prompt, by a service that renders prompts. */
import { OnpolicyError } from '../../errors.ts';
import type { ChatCompletionRequest } from '../../protocol/index.ts';
import type { CallOptions, Completions } from '../../protocol/service/index.ts';

/** Returns the tokens of the prompt with its pictures and sounds. */
export async function countPrompt(
  service: Pick<Completions, 'renderPrompt'>,
  { max_completion_tokens: _, ...request }: ChatCompletionRequest,
  options: CallOptions,
): Promise<number> {
  if (!service.renderPrompt) throw new OnpolicyError('UNSUPPORTED', 'this service has no prompts');
  return (await service.renderPrompt(request, options)).count;
}
