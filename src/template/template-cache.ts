/** Template text -> parsed template, kept by content: the ones used last stay, within two bounds. */
import { JinjaTemplate } from './template.ts';

const MAX_TEMPLATES = 64;
const MAX_CHARACTERS = 4_000_000;

const templates = new Map<string, JinjaTemplate>();
let characters = 0;

/** The template of a text. Failures are not kept. */
export function cachedTemplate(text: string): JinjaTemplate {
  const known = templates.get(text);
  if (known !== undefined) {
    templates.delete(text); // a Map keeps the order of insertion: the last used goes to the end
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
