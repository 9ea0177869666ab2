/** The package nunjucks -> its internal classes, typed. */
import nunjucks from 'nunjucks';

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

export const { nodes: nunjucksNodes, compiler: nunjucksCompiler } = nunjucks as unknown as {
  readonly nodes: { readonly Node: NodeClass };
  readonly compiler: {
    readonly Compiler: new (name: string | undefined, strict: boolean) => NunjucksCompiler;
  };
};
