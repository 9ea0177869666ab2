/** The package nunjucks -> its internal classes, typed. Their presence is checked at load. */
import nunjucks from 'nunjucks';

/** A node of Nunjucks' syntax tree. */
export interface NunjucksNode {
  readonly typename: string;
}

type NodeClass = {
  new (offset: number, fields: object): NunjucksNode;
  extend(name: string, properties: object): NodeClass;
};

/** Nunjucks' Compiler: calls `compile<Type>(node, scope)` for a node. */
interface NunjucksCompiler {
  compile(node: NunjucksNode, scope: unknown): void;
}

/** Nunjucks' Environment, required by its Template. It has no loaders, so nothing can be included. */
type NunjucksEnvironment = { readonly opts: Readonly<Record<string, unknown>> };

/** Nunjucks' Template: source, compilation, the root function. */
interface NunjucksTemplate {
  compiled: boolean;
  rootRenderFunc: unknown;
  compile(): void;
  _compile(): void;
}

type Internals = {
  readonly nodes: Readonly<Record<string, NodeClass>>;
  readonly compiler: {
    readonly Compiler: new (name: string | undefined, strict: boolean) => NunjucksCompiler;
  };
  readonly Environment: new (loaders: readonly never[], options: object) => NunjucksEnvironment;
  readonly Template: new (source: string, env: NunjucksEnvironment) => NunjucksTemplate;
};

const internals = nunjucks as unknown as Internals;

for (const [owner, holder, name] of [
  ['Compiler', internals.compiler.Compiler.prototype, 'compile'],
  ['Template', internals.Template.prototype, 'compile'],
  ['Template', internals.Template.prototype, '_compile'],
  ['Node', internals.nodes['Node'], 'extend'],
] as const)
  if (typeof (holder as unknown as Record<string, unknown>)[name] !== 'function')
    throw new Error(`onpolicy needs nunjucks 3.2.4: ${owner}.${name} is missing`);

export const { Environment, Template } = internals;
export const { Compiler } = internals.compiler;
export const nunjucksNodes = internals.nodes;
