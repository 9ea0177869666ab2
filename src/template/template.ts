/** Template text -> a template that renders: a subclass of Nunjucks' Template that compiles to functions. */
import { type Root, TemplateCompiler } from './compiler.ts';
import { Environment, Template } from './nunjucks.ts';
import { locate } from './python/py-error.ts';
import { type RenderSettings, RenderState } from './python/render-state.ts';
import type { Value } from './python/values.ts';
import { loopsOverContent } from './syntax/content-format.ts';
import { normaliseSource } from './syntax/lexer.ts';
import type { NodeOf } from './syntax/nodes.ts';
import { parse } from './syntax/parser.ts';
import { descendants } from './syntax/walk.ts';
import { toTemplateError } from './template-error.ts';

/** Without loaders; `include`, `import` and `extends` are refused by the parser. */
const ENVIRONMENT = new Environment([], { autoescape: false });

/** A compiled template. */
export class JinjaTemplate extends Template {
  /** The normalised source; offsets refer to it. */
  readonly source: string;
  /** Names that the template reads from its input. */
  variables: ReadonlySet<string> = new Set();
  /** Whether the template has generation blocks. */
  readonly hasGeneration: boolean;
  readonly #tree: NodeOf<'Root'>;
  #render: Root | null = null;
  #loopsOverContent: boolean | null = null;

  constructor(text: string) {
    const source = normaliseSource(text);
    super(source, ENVIRONMENT);
    this.source = source;
    try {
      this.#tree = parse(source);
      this.compile();
    } catch (error) {
      throw toTemplateError(error, source);
    }
    this.hasGeneration =
      source.includes('generation') && descendants(this.#tree).some((node) => node.typename === 'Generation');
  }

  /** Whether a loop runs over the parts of a message's content. */
  get loopsOverContent(): boolean {
    this.#loopsOverContent ??= loopsOverContent(this.#tree);
    return this.#loopsOverContent;
  }

  /** Nunjucks' hook. */
  override _compile(): void {
    const compiler = new TemplateCompiler();
    this.#render = compiler.root(this.#tree);
    this.variables = compiler.variables;
    this.rootRenderFunc = this.#render;
    this.compiled = true;
  }

  /** Renders once. */
  run(variables: ReadonlyMap<string, Value>, settings: RenderSettings): string {
    const state = new RenderState(settings);
    try {
      const text = this.#render!(state, variables);
      state.checkOutput(text);
      return text;
    } catch (error) {
      throw toTemplateError(locate(error, state.at), this.source);
    }
  }
}
