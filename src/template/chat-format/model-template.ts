/** A chat template's source -> the template, and the formats of tool calls and reasoning of its models. */

import { errorAt } from '../../errors.ts';
import type { ValidChatRequest } from '../../protocol/index.ts';
import { type ChatTemplate, compileChatTemplate } from '../index.ts';
import { detectMessageFormat, type MessageFormat, type VocabularyTexts } from './message-format.ts';

export type ModelTemplate = { readonly template: ChatTemplate; readonly format: MessageFormat };

/** Compiles a template and detects its formats. `toolFormat` names the tool-call format if detection is not enough. */
export function readTemplate(
  source: string,
  tokenizer: VocabularyTexts,
  toolFormat: string | undefined,
): ModelTemplate {
  return {
    template: compileChatTemplate(source),
    format: detectMessageFormat(source, tokenizer, toolFormat),
  };
}

/** A model's templates, and its name in errors. */
type TemplatedModel = {
  readonly path: string;
  readonly tokenizer: VocabularyTexts;
  readonly template: ModelTemplate | null;
  readonly toolTemplate: ModelTemplate | null;
};

/** Returns the template of the request, otherwise that of the model: its variant for tools if tools are given and it has one. */
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
