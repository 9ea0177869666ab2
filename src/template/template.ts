/** Template text -> a template that renders. */
import { type Root, TemplateCompiler } from './compiler.ts';
import { locate } from './python/py-error.ts';
import { type RenderSettings, RenderState } from './python/render-state.ts';
import type { Value } from './python/values.ts';
import { loopsOverContent } from './syntax/content-format.ts';
import { normaliseSource } from './syntax/lexer.ts';
import type { NodeOf } from './syntax/nodes.ts';
import { parse } from './syntax/parser.ts';
import { toTemplateError } from './template-error.ts';

export class JinjaTemplate {
  /** The normalised source; offsets refer to it. */
  readonly source: string;
  readonly variables: ReadonlySet<string>;
  readonly hasGeneration: boolean;
  readonly #tree: NodeOf<'Root'>;
  readonly #render: Root;
  #loopsOverContent: boolean | null = null;

  constructor(text: string) {
    this.source = normaliseSource(text);
    const compiler = new TemplateCompiler();
    try {
      this.#tree = parse(this.source);
      this.#render = compiler.root(this.#tree);
    } catch (error) {
      throw toTemplateError(error, this.source);
    }
    this.variables = compiler.variables;
    this.hasGeneration = compiler.hasGeneration;
  }

  /** Whether a loop runs over the parts of a message's content. */
  get loopsOverContent(): boolean {
    this.#loopsOverContent ??= loopsOverContent(this.#tree);
    return this.#loopsOverContent;
  }

  run(variables: ReadonlyMap<string, Value>, settings: RenderSettings): string {
    const state = new RenderState(settings);
    try {
      const text = this.#render(state, variables);
      state.checkOutput(text);
      return text;
    } catch (error) {
      throw toTemplateError(locate(error, state.at), this.source);
    }
  }
}

const MAX_TEMPLATES = 64;
const MAX_CHARACTERS = 4_000_000;

const templates = new Map<string, JinjaTemplate>();
let characters = 0;

/** The compiled template of a text, from a cache with two bounds. Errors are not cached. */
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
