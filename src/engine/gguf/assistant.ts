/** The header of an assistant of Gemma 4, which drafts from the cache of its model -> nothing, or an error about it. */
import type { GgufHeader } from './header.ts';

/** Architecture of the assistants of Gemma 4. */
export const ASSISTANT = 'gemma4-assistant';
/** The architecture of the models that it drafts for. */
export const ASSISTED = 'gemma4';

/**
 * Checks the properties that the engine assumes without a check.
 * @throws OnpolicyError `MODEL_INVALID`
 */
export function checkAssistant(header: GgufHeader): void {
  const need = (name: string, rule = {}): number => {
    const key = `${ASSISTANT}.${name}`;
    return header.need(key, header.number(key, rule));
  };
  const layers = need('block_count');
  need('nextn_predict_layers', { min: layers, max: layers });
  need('embedding_length_out', { min: 1 });
  need('attention.sliding_window', { min: 1 });
}
