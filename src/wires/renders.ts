/** The part of a service that renders prompts, for endpoints that count tokens. */
import type { ChatCompletionRequest, RenderedPrompt } from '../protocol/index.ts';
import type { CallOptions } from '../service.ts';

/** What renders prompts. */
export type Renders = {
  renderPrompt(request: ChatCompletionRequest, options?: CallOptions): Promise<RenderedPrompt>;
};
