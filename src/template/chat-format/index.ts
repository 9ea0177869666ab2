/** A chat template's source and a request -> the prompt's format, and the plan for reading the model's text. */
export {
  type MessageFormat,
  type MessagePlan,
  PLAIN_TEXT,
  planMessage,
  planReasoning,
  type VocabularyTexts,
} from './message-format.ts';
export { type ModelTemplate, readTemplate, templateFor } from './model-template.ts';
