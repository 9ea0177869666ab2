/** Template text -> a template that renders: a subclass of Nunjucks' Template with its own runtime. */
import { TemplateCompiler } from './compiler.ts';
import { interpretTemplate, type TemplateFunction, type TemplateFunctions } from './evaluator.ts';
import { GLOBALS } from './library/library.ts';
import { Environment, Template } from './nunjucks.ts';
import { OPERATIONS } from './operations.ts';
import { RenderState, type TemplateLimits } from './python/render-state.ts';
import type { Value } from './python/values.ts';
import { VariableContext } from './python/variable-context.ts';
import { loopsOverContent } from './syntax/content-format.ts';
import { normaliseSource } from './syntax/lexer.ts';
import type { NodeOf } from './syntax/nodes.ts';
import { parse } from './syntax/parser.ts';
import { planScopes } from './syntax/scope.ts';
import { descendants } from './syntax/walk.ts';
import { toTemplateError } from './template-error.ts';

/** How templates run: as generated JavaScript, by walking the tree, or the first that the host allows. */
export type TemplateEngine = 'auto' | 'compiled' | 'interpreted';

/** Input of one render. */
export type RunOptions = {
  readonly variables: ReadonlyMap<string, Value>;
  readonly limits: TemplateLimits;
  readonly engine: TemplateEngine;
  readonly now: () => Date;
  /** Characters to put around generation blocks. */
  readonly spanMarks: readonly [string, string] | null;
  /** Values whose missing fields are errors, and where the caller gave them. */
  readonly paths: ReadonlyMap<unknown, string>;
};

/** Without loaders, so include, import and extends fail. */
const ENVIRONMENT = new Environment([], { autoescape: false });

let codeIsAllowed: boolean | null = null;

/** Whether the host allows code generation; tested once. */
function canCompile(): boolean {
  if (codeIsAllowed === null) {
    try {
      codeIsAllowed = new Function('return true')() === true;
    } catch {
      codeIsAllowed = false;
    }
  }
  return codeIsAllowed;
}

/** A parsed template. Code is generated on first use. */
export class JinjaTemplate extends Template {
  /** The normalised source; offsets refer to it. */
  readonly source: string;
  /** Names that the template reads from its context. */
  readonly variables: ReadonlySet<string>;
  readonly #root: NodeOf<'Root'>;
  #compiled: TemplateFunctions | null = null;
  #interpreted: TemplateFunctions | null = null;
  #loopsOverContent: boolean | null = null;
  #hasGeneration: boolean | null = null;

  constructor(text: string) {
    const source = normaliseSource(text);
    super(source, ENVIRONMENT, undefined, false);
    this.source = source;
    try {
      this.#root = parse(source);
      this.variables = planScopes(this.#root).variables;
    } catch (error) {
      throw toTemplateError(error, source);
    }
  }

  /** Whether a loop runs over the parts of a message's content. */
  get loopsOverContent(): boolean {
    this.#loopsOverContent ??= loopsOverContent(this.#root);
    return this.#loopsOverContent;
  }

  /** Whether the template has generation blocks. */
  get hasGeneration(): boolean {
    this.#hasGeneration ??= descendants(this.#root).some(
      (node) => node.typename === 'CallBlock' && node.call === null,
    );
    return this.#hasGeneration;
  }

  /** Nunjucks' hook: generates the code. */
  override _compile(): void {
    const compiler = new TemplateCompiler();
    compiler.compile(this.#root);
    const { code, constants } = compiler.result();
    const make = new Function('o', 'k', code) as (
      operations: typeof OPERATIONS,
      constants: readonly unknown[],
    ) => [root: TemplateFunction, blocks: [name: string, block: TemplateFunction][]];
    const [root, blocks] = make(OPERATIONS, constants);
    this.#compiled = { root, blocks: new Map(blocks) };
    this.rootRenderFunc = root;
    this.compiled = true;
  }

  #functions(engine: TemplateEngine): TemplateFunctions {
    if (engine === 'interpreted' || (engine === 'auto' && !canCompile())) {
      this.#interpreted ??= interpretTemplate(this.#root);
      return this.#interpreted;
    }
    this.compile();
    return this.#compiled!;
  }

  /** Renders once. */
  run(options: RunOptions): string {
    const given = new Map([...GLOBALS, ...options.variables]);
    try {
      const { root, blocks } = this.#functions(options.engine);
      const context = new VariableContext(given, blocks);
      const state = new RenderState(options.limits, options.now, options.spanMarks, options.paths);
      const text = root(state, context);
      state.checkOutput(text);
      return text;
    } catch (error) {
      throw toTemplateError(error, this.source);
    }
  }
}
