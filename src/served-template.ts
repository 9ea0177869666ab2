/** A chat template's source -> the template, and how models that use it write tool calls and reasoning. */
import { detectMessageFormat, type MessageFormat } from './message-format.ts';
import { type ChatTemplate, compileChatTemplate } from './template/index.ts';
import type { Tokenizer } from './tokenizer.ts';

/** A template that is ready to use. */
export type ServedTemplate = { readonly template: ChatTemplate; readonly format: MessageFormat };

/** `toolFormat` names the tool-call format where looking at the template is not enough. */
export function serveTemplate(
  source: string,
  tokenizer: Tokenizer,
  toolFormat: string | undefined,
): ServedTemplate {
  return {
    template: compileChatTemplate(source),
    format: detectMessageFormat(source, tokenizer, toolFormat),
  };
}
