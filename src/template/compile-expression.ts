/** Expressions with plans -> JavaScript. The base class of the compiler. */
import { FILTERS, TESTS } from './library/library.ts';
import { Compiler, type NunjucksNode } from './nunjucks.ts';
import type { Operations } from './operations.ts';
import type { Arguments, CompareOperator, Expression, NodeOf } from './syntax/nodes.ts';
import type { VariableRef } from './syntax/plans.ts';

type OperationName = keyof Operations & string;

const COMPARISONS: Readonly<Record<CompareOperator, OperationName>> = {
  '==': 'equal',
  '!=': 'notEqual',
  '<': 'less',
  '<=': 'lessEqual',
  '>': 'greater',
  '>=': 'greaterEqual',
  in: 'isIn',
  'not in': 'isNotIn',
};

/** The JavaScript name of a variable of the template. */
export function variable(ref: VariableRef): string {
  return `v${ref.functionId}_${ref.slot}`;
}

/** Writes expressions to the code buffer of Nunjucks' Compiler, which calls one method per node type. */
export class ExpressionCompiler extends Compiler {
  protected readonly constants: unknown[] = [];
  readonly #constantIndex = new Map<unknown, number>();
  /** Temporary names of the current function. */
  protected temporaries: string[] = [];

  constructor() {
    super(undefined, false);
  }

  /** A new name for an intermediate value. */
  protected temporary(): string {
    const name = this._tmpid();
    this.temporaries.push(name);
    return name;
  }

  protected constant(value: unknown): string {
    let index = this.#constantIndex.get(value);
    if (index === undefined) {
      index = this.constants.push(value) - 1;
      this.#constantIndex.set(value, index);
    }
    return `k${index}`;
  }

  protected readVariable(ref: VariableRef, name: string): string {
    return `(${variable(ref)}===void 0?o.undefinedName(${this.constant(name)}):${variable(ref)})`;
  }

  /** `o.name(s, …, at=offset)`: the position is set after the operands and before the operation. */
  #operation(
    name: OperationName,
    node: NunjucksNode & { offset: number },
    operands: readonly Expression[],
  ): void {
    this._emit(`o.${name}(s`);
    for (const operand of operands) {
      this._emit(',');
      this.compile(operand);
    }
    this._emit(`,at=${node.offset})`);
  }

  #list(items: readonly Expression[]): void {
    this._emit('[');
    items.forEach((item, index) => {
      if (index > 0) this._emit(',');
      this.compile(item);
    });
    this._emit(']');
  }

  protected emitTruth(node: Expression): void {
    if (node.typename === 'Not') {
      this._emit('!');
      this.emitTruth(node.target);
    } else if (node.typename === 'Compare' || node.typename === 'Is') this.compile(node);
    else {
      this._emit('o.truth(s,');
      this.compile(node);
      this._emit(')');
    }
  }

  compileLiteral(node: NodeOf<'Literal'>): void {
    const { value } = node;
    if (value === null || typeof value === 'boolean') this._emit(String(value));
    else this._emit(this.constant(value));
  }

  compileSymbol(node: NodeOf<'Symbol'>): void {
    this._emit(node.isAlwaysSet ? variable(node.ref!) : this.readVariable(node.ref!, node.name));
  }

  compileArray(node: NodeOf<'Array'>): void {
    this._emit('o.list(s,');
    this.#list(node.items);
    this._emit(')');
  }

  compileTuple(node: NodeOf<'Tuple'>): void {
    this._emit('o.tuple(');
    this.#list(node.items);
    this._emit(')');
  }

  compileDict(node: NodeOf<'Dict'>): void {
    this._emit('o.dict(s,');
    this.#list(node.pairs.flatMap((pair) => [pair.key, pair.value]));
    this._emit(`,at=${node.offset})`);
  }

  compileAttribute(node: NodeOf<'Attribute'>): void {
    this._emit('o.attribute(s,');
    this.compile(node.target);
    this._emit(`,${this.constant(node.name)},at=${node.offset})`);
  }

  compileLookupVal(node: NodeOf<'LookupVal'>): void {
    this.#operation('item', node, [node.target, node.key]);
  }

  compileSlice(node: NodeOf<'Slice'>): void {
    this._emit('o.slice(s,');
    this.compile(node.target);
    for (const part of [node.start, node.stop, node.step]) {
      this._emit(',');
      if (part === null) this._emit('null');
      else this.compile(part);
    }
    this._emit(`,at=${node.offset})`);
  }

  compileFunCall(node: NodeOf<'FunCall'>): void {
    this.emitCall(node, null);
  }

  protected emitCall(node: NodeOf<'FunCall'>, caller: string | null): void {
    this._emit('o.call(s,');
    this.compile(node.callee);
    this._emit(',');
    this.#arguments(node.args, null, caller);
    this._emit(`,at=${node.offset})`);
  }

  /** Positional arguments and keywords, as two JavaScript arguments. `first` writes a value before them. */
  #arguments(args: Arguments, first: (() => void) | null, caller: string | null): void {
    if (args.spread !== null) this._emit('o.spread(s,');
    this._emit('[');
    first?.();
    args.positional.forEach((value, index) => {
      if (index > 0 || first !== null) this._emit(',');
      this.compile(value);
    });
    this._emit(']');
    if (args.spread !== null) {
      this._emit(',');
      this.compile(args.spread);
      this._emit(')');
    }
    this._emit(',');
    if (args.keywords.length === 0 && args.spreadKeywords === null && caller === null) {
      this._emit('null');
      return;
    }
    const names = args.keywords.map((keyword) => keyword.name);
    if (caller !== null) names.push('caller');
    this._emit(`o.keywords(s,${this.constant(names)},[`);
    for (const keyword of args.keywords) {
      this.compile(keyword.value);
      this._emit(',');
    }
    if (caller !== null) this._emit(caller);
    this._emit('],');
    if (args.spreadKeywords === null) this._emit('void 0');
    else this.compile(args.spreadKeywords);
    this._emit(')');
  }

  compileFilter(node: NodeOf<'Filter'>): void {
    this.emitFilter(node, () => this.compile(node.target!));
  }

  protected emitFilter(node: NodeOf<'Filter'>, target: () => void): void {
    const filter = FILTERS.get(node.name);
    if (filter === undefined) this._emit(`o.missingFilter(${this.constant(node.name)},at=${node.offset})`);
    else {
      this._emit(`o.filter(s,${this.constant(filter)},`);
      this.#arguments(node.args, target, null);
      this._emit(`,at=${node.offset})`);
    }
  }

  compileIs(node: NodeOf<'Is'>): void {
    const test = TESTS.get(node.name);
    if (test === undefined) this._emit(`o.missingTest(${this.constant(node.name)},at=${node.offset})`);
    else {
      this._emit(`o.test(s,${this.constant(test)},`);
      this.#arguments(node.args, () => this.compile(node.target), null);
      this._emit(`,at=${node.offset})`);
    }
  }

  compileInlineIf(node: NodeOf<'InlineIf'>): void {
    this._emit('(');
    this.emitTruth(node.cond);
    this._emit('?');
    this.compile(node.body);
    this._emit(':');
    if (node.otherwise === null) this._emit('o.undefinedElse()');
    else this.compile(node.otherwise);
    this._emit(')');
  }

  /** `and`, `or`: the value is the operand that decides. */
  #either(node: NodeOf<'And'> | NodeOf<'Or'>): void {
    const left = this.temporary();
    this._emit(`(o.truth(s,${left}=`);
    this.compile(node.left);
    this._emit(')?');
    if (node.typename === 'And') this.compile(node.right);
    else this._emit(left);
    this._emit(':');
    if (node.typename === 'And') this._emit(left);
    else this.compile(node.right);
    this._emit(')');
  }

  compileAnd(node: NodeOf<'And'>): void {
    this.#either(node);
  }
  compileOr(node: NodeOf<'Or'>): void {
    this.#either(node);
  }

  compileNot(node: NodeOf<'Not'>): void {
    this._emit('!');
    this.emitTruth(node.target);
  }
  compileNeg(node: NodeOf<'Neg'>): void {
    this.#operation('negative', node, [node.target]);
  }
  compilePos(node: NodeOf<'Pos'>): void {
    this._emit('o.positive(');
    this.compile(node.target);
    this._emit(`,at=${node.offset})`);
  }
  compileAdd(node: NodeOf<'Add'>): void {
    this.#operation('add', node, [node.left, node.right]);
  }
  compileSub(node: NodeOf<'Sub'>): void {
    this.#operation('subtract', node, [node.left, node.right]);
  }
  compileMul(node: NodeOf<'Mul'>): void {
    this.#operation('multiply', node, [node.left, node.right]);
  }
  compileDiv(node: NodeOf<'Div'>): void {
    this.#operation('divide', node, [node.left, node.right]);
  }
  compileFloorDiv(node: NodeOf<'FloorDiv'>): void {
    this.#operation('floorDivide', node, [node.left, node.right]);
  }
  compileMod(node: NodeOf<'Mod'>): void {
    this.#operation('modulo', node, [node.left, node.right]);
  }
  compilePow(node: NodeOf<'Pow'>): void {
    this.#operation('power', node, [node.left, node.right]);
  }

  compileConcat(node: NodeOf<'Concat'>): void {
    this._emit('o.concatenate(s,');
    this.#list(node.items);
    this._emit(`,at=${node.offset})`);
  }

  compileCompare(node: NodeOf<'Compare'>): void {
    this.#comparison(node, 0, () => this.compile(node.first));
  }

  /** `a < b < c`: each value is computed at most once, and only if all comparisons before it are true. */
  #comparison(node: NodeOf<'Compare'>, index: number, left: () => void): void {
    const { operator, value } = node.operands[index]!;
    const name = COMPARISONS[operator];
    if (index === node.operands.length - 1) {
      this._emit(`o.${name}(s,`);
      left();
      this._emit(',');
      this.compile(value);
      this._emit(`,at=${node.offset})`);
      return;
    }
    const middle = this.temporary();
    this._emit(`(o.${name}(s,`);
    left();
    this._emit(`,${middle}=`);
    this.compile(value);
    this._emit(`,at=${node.offset})&&`);
    this.#comparison(node, index + 1, () => this._emit(middle));
    this._emit(')');
  }
}
