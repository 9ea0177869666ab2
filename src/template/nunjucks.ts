/** The package nunjucks -> its internal classes, typed. Their presence is checked at load. */
import nunjucks from 'nunjucks';

/** A node of Nunjucks' syntax tree. */
export interface NunjucksNode {
  readonly typename: string;
  readonly lineno: number;
  readonly colno: number;
}

type NodeClass = {
  new (lineno: number, colno: number, ...fields: unknown[]): NunjucksNode;
  extend(name: string, properties: { fields: readonly string[] }): NodeClass;
  readonly prototype: { init: (...args: never[]) => void };
};

/** Nunjucks' Compiler: dispatch by node type, the code buffer, the stack of output buffers, temporary names. */
interface NunjucksCompiler {
  buffer: string | null;
  compile(node: NunjucksNode, frame?: unknown): void;
  getCode(): string;
  _emit(code: string): void;
  _emitLine(code: string): void;
  _tmpid(): string;
  _pushBuffer(): string;
  _popBuffer(): void;
}

/** Nunjucks' Environment, required by its Template. It has no loaders, so nothing can be included. */
type NunjucksEnvironment = { readonly opts: Readonly<Record<string, unknown>> };

/** Nunjucks' Template: source, lazy compilation, the root function. */
interface NunjucksTemplate {
  readonly env: NunjucksEnvironment;
  tmplStr: string;
  compiled: boolean;
  rootRenderFunc: unknown;
  blocks: unknown;
  compile(): void;
  _compile(): void;
}

type Internals = {
  readonly nodes: Readonly<Record<string, NodeClass>>;
  readonly compiler: {
    readonly Compiler: new (name: string | undefined, strict: boolean) => NunjucksCompiler;
  };
  readonly Environment: new (loaders: readonly never[], options: object) => NunjucksEnvironment;
  readonly Template: new (
    source: string,
    env: NunjucksEnvironment,
    path?: string,
    eager?: boolean,
  ) => NunjucksTemplate;
};

const internals = nunjucks as unknown as Internals;

function requireMethods(owner: string, prototype: object, names: readonly string[]): void {
  for (const name of names)
    if (typeof (prototype as Record<string, unknown>)[name] !== 'function')
      throw new Error(`onpolicy needs nunjucks 3.2.4: ${owner}.${name} is missing`);
}
requireMethods('Compiler', internals.compiler.Compiler.prototype as object, [
  'compile',
  'getCode',
  '_emit',
  '_emitLine',
  '_tmpid',
  '_pushBuffer',
  '_popBuffer',
]);
requireMethods('Template', internals.Template.prototype as object, ['compile', '_compile', 'init']);
requireMethods('Node', internals.nodes['Node'] as object, ['extend']);

export const { Environment, Template } = internals;
export const { Compiler } = internals.compiler;
export const nunjucksNodes = internals.nodes;
