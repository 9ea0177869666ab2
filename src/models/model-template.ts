/** A chat template's source -> the template, and how models that use it write tool calls and reasoning. */
import { errorAt } from '../errors.ts';
import type { ValidChatRequest } from '../protocol/index.ts';
import { type ChatTemplate, compileChatTemplate } from '../template/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import { detectMessageFormat, type MessageFormat } from './message-format.ts';

export type ModelTemplate = { readonly template: ChatTemplate; readonly format: MessageFormat };

/** `toolFormat` names the tool-call format where looking at the template is not enough. */
export function readTemplate(
  source: string,
  tokenizer: Tokenizer,
  toolFormat: string | undefined,
): ModelTemplate {
  return {
    template: compileChatTemplate(source),
    format: detectMessageFormat(source, tokenizer, toolFormat),
  };
}

/** A model's own templates, and what names it in errors. */
type TemplatedModel = {
  readonly path: string;
  readonly tokenizer: Tokenizer;
  readonly template: ModelTemplate | null;
  readonly toolTemplate: ModelTemplate | null;
};

/** The request's own template, else the model's: its variant for tools where there is one. */
export function templateFor(
  { path, tokenizer, template, toolTemplate }: TemplatedModel,
  request: Pick<ValidChatRequest, 'chat_template' | 'tools'>,
): ModelTemplate {
  if (request.chat_template !== null) return readTemplate(request.chat_template, tokenizer, undefined);
  const chosen = (request.tools.length > 0 ? toolTemplate : null) ?? template;
  if (chosen) return chosen;
  throw errorAt(
    'chat_template',
    'TEMPLATE_FAILED',
    `${path} holds none; give one with the request or with the model's option chatTemplate`,
  );
}
