/** `onpolicy/template`: chat templates in Jinja2, byte-exact, safe with untrusted input. */
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
export type { TemplateEngine } from './template.ts';
