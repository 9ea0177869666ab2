/** Template text -> parsed template, from an LRU cache with two bounds. */
import { JinjaTemplate } from './template.ts';

const MAX_TEMPLATES = 64;
const MAX_CHARACTERS = 4_000_000;

const templates = new Map<string, JinjaTemplate>();
let characters = 0;

/** The parsed template of a text. Errors are not cached. */
export function cachedTemplate(text: string): JinjaTemplate {
  const known = templates.get(text);
  if (known !== undefined) {
    templates.delete(text); // a Map is in order of insertion: moves the entry to the end
    templates.set(text, known);
    return known;
  }
  const template = new JinjaTemplate(text);
  templates.set(text, template);
  characters += text.length;
  for (const oldest of templates.keys()) {
    if (templates.size <= MAX_TEMPLATES && characters <= MAX_CHARACTERS) break;
    templates.delete(oldest);
    characters -= oldest.length;
  }
  return template;
}
