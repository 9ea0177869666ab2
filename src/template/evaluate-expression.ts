/** An expression -> its value, by walking the tree. */
import type { Activation } from './activation.ts';
import { FILTERS, TESTS } from './library/library.ts';
import { OPERATIONS } from './operations.ts';
import type { Keywords, Value } from './python/values.ts';
import type { Arguments, BinaryName, Expression, NodeOf } from './syntax/nodes.ts';

/** `bool(expression)`. */
export function isTrue(node: Expression, activation: Activation): boolean {
  return OPERATIONS.truth(activation.state, evaluate(node, activation));
}

/** Applies a chain of filters to a text. */
export function filterOn(filter: NodeOf<'Filter'>, text: string, activation: Activation): Value {
  const value =
    filter.target === null
      ? OPERATIONS.captured(activation.state, text)
      : filterOn(filter.target as NodeOf<'Filter'>, text, activation);
  return applyFilter(filter, () => value, activation);
}

function applyFilter(node: NodeOf<'Filter'>, value: () => Value, activation: Activation): Value {
  const filter = FILTERS.get(node.name);
  if (filter === undefined) {
    activation.at = node.offset;
    return OPERATIONS.missingFilter(node.name);
  }
  const first = value();
  const [args, keywords] = evaluateArguments(node.args, activation, [first], null);
  activation.at = node.offset;
  return OPERATIONS.filter(activation.state, filter, args, keywords);
}

function evaluateArguments(
  args: Arguments,
  activation: Activation,
  first: readonly Value[],
  caller: Value | null,
): [positional: readonly Value[], keywords: Keywords | null] {
  const { state } = activation;
  let positional: readonly Value[] = [
    ...first,
    ...args.positional.map((value) => evaluate(value, activation)),
  ];
  if (args.spread !== null)
    positional = OPERATIONS.spread(state, positional, evaluate(args.spread, activation));
  if (args.keywords.length === 0 && args.spreadKeywords === null && caller === null)
    return [positional, null];
  const names = args.keywords.map((keyword) => keyword.name);
  const values = args.keywords.map((keyword) => evaluate(keyword.value, activation));
  if (caller !== null) {
    names.push('caller');
    values.push(caller);
  }
  const rest = args.spreadKeywords === null ? undefined : evaluate(args.spreadKeywords, activation);
  return [positional, OPERATIONS.keywords(state, names, values, rest)];
}

/** Calls a function; `caller` is the macro of a call block. */
export function callFunction(node: NodeOf<'FunCall'>, activation: Activation, caller: Value | null): Value {
  const callee = evaluate(node.callee, activation);
  const [args, keywords] = evaluateArguments(node.args, activation, [], caller);
  activation.at = node.offset;
  return OPERATIONS.call(activation.state, callee, args, keywords);
}

const COMPARISONS = {
  '==': OPERATIONS.equal,
  '!=': OPERATIONS.notEqual,
  '<': OPERATIONS.less,
  '<=': OPERATIONS.lessEqual,
  '>': OPERATIONS.greater,
  '>=': OPERATIONS.greaterEqual,
  in: OPERATIONS.isIn,
  'not in': OPERATIONS.isNotIn,
} as const;

/** The value of an expression. */
export function evaluate(node: Expression, activation: Activation): Value {
  return (EVALUATE[node.typename] as Evaluate<Expression>)(node, activation);
}

type Evaluate<Node> = (node: Node, activation: Activation) => Value;

/** Evaluation by type. The position is set after the operands and before the operation, as in compiled code. */
const EVALUATE: { readonly [Type in Expression['typename']]: Evaluate<NodeOf<Type>> } = {
  Literal: (node) => node.value,
  Symbol: (node, activation) => activation.read(node.ref!) ?? readMissing(node, activation),
  Array: (node, activation) => OPERATIONS.list(activation.state, evaluateAll(node.items, activation)),
  Tuple: (node, activation) => OPERATIONS.tuple(evaluateAll(node.items, activation)),
  Dict: (node, activation) => {
    const flat: Value[] = [];
    for (const { key, value } of node.pairs)
      flat.push(evaluate(key, activation), evaluate(value, activation));
    activation.at = node.offset;
    return OPERATIONS.dict(activation.state, flat);
  },
  Attribute: (node, activation) => {
    const target = evaluate(node.target, activation);
    activation.at = node.offset;
    return OPERATIONS.attribute(activation.state, target, node.name);
  },
  LookupVal: (node, activation) => {
    const target = evaluate(node.target, activation);
    const key = evaluate(node.key, activation);
    activation.at = node.offset;
    return OPERATIONS.item(activation.state, target, key);
  },
  Slice: (node, activation) => {
    const target = evaluate(node.target, activation);
    const [start, stop, step] = [node.start, node.stop, node.step].map((part) =>
      part === null ? null : evaluate(part, activation),
    );
    activation.at = node.offset;
    return OPERATIONS.slice(activation.state, target, start!, stop!, step!);
  },
  FunCall: (node, activation) => callFunction(node, activation, null),
  Filter: (node, activation) => applyFilter(node, () => evaluate(node.target!, activation), activation),
  Is: evaluateTest,
  InlineIf: (node, activation) => {
    if (isTrue(node.cond, activation)) return evaluate(node.body, activation);
    return node.otherwise === null ? OPERATIONS.undefinedElse() : evaluate(node.otherwise, activation);
  },
  And: (node, activation) => {
    const left = evaluate(node.left, activation);
    return OPERATIONS.truth(activation.state, left) ? evaluate(node.right, activation) : left;
  },
  Or: (node, activation) => {
    const left = evaluate(node.left, activation);
    return OPERATIONS.truth(activation.state, left) ? left : evaluate(node.right, activation);
  },
  Add: binary(OPERATIONS.add),
  Sub: binary(OPERATIONS.subtract),
  Mul: binary(OPERATIONS.multiply),
  Div: binary(OPERATIONS.divide),
  FloorDiv: binary(OPERATIONS.floorDivide),
  Mod: binary(OPERATIONS.modulo),
  Pow: binary(OPERATIONS.power),
  Not: (node, activation) => !isTrue(node.target, activation),
  Neg: (node, activation) => {
    const value = evaluate(node.target, activation);
    activation.at = node.offset;
    return OPERATIONS.negative(activation.state, value);
  },
  Pos: (node, activation) => {
    const value = evaluate(node.target, activation);
    activation.at = node.offset;
    return OPERATIONS.positive(value);
  },
  Concat: (node, activation) => {
    const items = evaluateAll(node.items, activation);
    activation.at = node.offset;
    return OPERATIONS.concatenate(activation.state, items);
  },
  Compare: evaluateComparison,
};

function evaluateAll(nodes: readonly Expression[], activation: Activation): Value[] {
  return nodes.map((node) => evaluate(node, activation));
}

function binary(
  operation: (state: Activation['state'], left: Value, right: Value) => Value,
): Evaluate<NodeOf<BinaryName>> {
  return (node, activation) => {
    const left = evaluate(node.left, activation);
    const right = evaluate(node.right, activation);
    activation.at = node.offset;
    return operation(activation.state, left, right);
  };
}

function evaluateTest(node: NodeOf<'Is'>, activation: Activation): Value {
  const test = TESTS.get(node.name);
  if (test === undefined) {
    activation.at = node.offset;
    return OPERATIONS.missingTest(node.name);
  }
  const first = evaluate(node.target, activation);
  const [args, keywords] = evaluateArguments(node.args, activation, [first], null);
  activation.at = node.offset;
  return OPERATIONS.test(activation.state, test, args, keywords);
}

function evaluateComparison(node: NodeOf<'Compare'>, activation: Activation): Value {
  let left = evaluate(node.first, activation);
  for (const { operator, value } of node.operands) {
    const right = evaluate(value, activation);
    activation.at = node.offset;
    if (!COMPARISONS[operator](activation.state, left, right)) return false;
    left = right;
  }
  return true;
}

/** The value of a variable without a value: None if it is null, else Undefined. */
function readMissing(node: NodeOf<'Symbol'>, activation: Activation): Value {
  return activation.read(node.ref!) === null ? null : OPERATIONS.undefinedName(node.name);
}
