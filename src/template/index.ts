/// <reference types="node" preserve="true" />
/**
 * A chat template in Jinja2 and a chat -> prompt text: byte-exact, and safe with untrusted templates.
 *
 * Reading order: `chat-template` (the public calls), `syntax/` (lexer, parser, then `scope`, which gives each variable
 * a slot), `compile-expression` and `compiler` (a tree becomes a function), `python/` (values with Python's semantics), `library/`
 * (filters, tests, globals).
 */
export {
  ChatTemplate,
  type ContentFormat,
  compileChatTemplate,
  type MaskedText,
  type RenderInput,
  type RenderOptions,
  renderChatTemplate,
} from './chat-template.ts';
export type { TemplateLimits } from './python/render-state.ts';
export { DEFAULT_LIMITS as DEFAULT_TEMPLATE_LIMITS } from './python/render-state.ts';
export type { AssistantSpan } from './spans.ts';
