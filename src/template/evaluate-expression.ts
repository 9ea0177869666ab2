/** Expressions -> values, by walking the tree. */
import type { Activation } from './activation.ts';
import { FILTERS, TESTS } from './library/library.ts';
import { OPERATIONS } from './operations.ts';
import type { Keywords, Value } from './python/values.ts';
import type { Arguments, Expression, NodeOf } from './syntax/nodes.ts';

/** `bool(expression)`. */
export function isTrue(node: Expression, activation: Activation): boolean {
  return OPERATIONS.truth(activation.state, evaluate(node, activation));
}

/** A chain of filters whose innermost value is a text. */
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

/** A call; `caller` is what a call block hands on. */
export function callFunction(node: NodeOf<'FunCall'>, activation: Activation, caller: Value | null): Value {
  const callee = evaluate(node.callee, activation);
  const [args, keywords] = evaluateArguments(node.args, activation, [], caller);
  activation.at = node.offset;
  return OPERATIONS.call(activation.state, callee, args, keywords);
}

const BINARY = {
  Add: OPERATIONS.add,
  Sub: OPERATIONS.subtract,
  Mul: OPERATIONS.multiply,
  Div: OPERATIONS.divide,
  FloorDiv: OPERATIONS.floorDivide,
  Mod: OPERATIONS.modulo,
  Pow: OPERATIONS.power,
} as const;

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
  const { state } = activation;
  const at = (): void => {
    activation.at = node.offset;
  };
  switch (node.typename) {
    case 'Literal':
      return node.value;
    case 'Symbol':
      return activation.read(node.ref!) ?? readMissing(node, activation);
    case 'Array':
      return OPERATIONS.list(
        state,
        node.items.map((item) => evaluate(item, activation)),
      );
    case 'Tuple':
      return OPERATIONS.tuple(node.items.map((item) => evaluate(item, activation)));
    case 'Dict': {
      const flat: Value[] = [];
      for (const { key, value } of node.pairs)
        flat.push(evaluate(key, activation), evaluate(value, activation));
      at();
      return OPERATIONS.dict(state, flat);
    }
    case 'Attribute': {
      const target = evaluate(node.target, activation);
      at();
      return OPERATIONS.attribute(state, target, node.name);
    }
    case 'LookupVal': {
      const target = evaluate(node.target, activation);
      const key = evaluate(node.key, activation);
      at();
      return OPERATIONS.item(state, target, key);
    }
    case 'Slice': {
      const target = evaluate(node.target, activation);
      const [start, stop, step] = [node.start, node.stop, node.step].map((part) =>
        part === null ? null : evaluate(part, activation),
      );
      at();
      return OPERATIONS.slice(state, target, start!, stop!, step!);
    }
    case 'FunCall':
      return callFunction(node, activation, null);
    case 'Filter':
      return applyFilter(node, () => evaluate(node.target!, activation), activation);
    case 'Is': {
      const test = TESTS.get(node.name);
      if (test === undefined) {
        at();
        return OPERATIONS.missingTest(node.name);
      }
      const first = evaluate(node.target, activation);
      const [args, keywords] = evaluateArguments(node.args, activation, [first], null);
      at();
      return OPERATIONS.test(state, test, args, keywords);
    }
    case 'InlineIf':
      if (isTrue(node.cond, activation)) return evaluate(node.body, activation);
      return node.otherwise === null ? OPERATIONS.undefinedElse() : evaluate(node.otherwise, activation);
    case 'And': {
      const left = evaluate(node.left, activation);
      return OPERATIONS.truth(state, left) ? evaluate(node.right, activation) : left;
    }
    case 'Or': {
      const left = evaluate(node.left, activation);
      return OPERATIONS.truth(state, left) ? left : evaluate(node.right, activation);
    }
    case 'Not':
      return !isTrue(node.target, activation);
    case 'Neg': {
      const value = evaluate(node.target, activation);
      at();
      return OPERATIONS.negative(state, value);
    }
    case 'Pos': {
      const value = evaluate(node.target, activation);
      at();
      return OPERATIONS.positive(value);
    }
    case 'Concat': {
      const items = node.items.map((item) => evaluate(item, activation));
      at();
      return OPERATIONS.concatenate(state, items);
    }
    case 'Compare': {
      let left = evaluate(node.first, activation);
      for (const { operator, value } of node.operands) {
        const right = evaluate(value, activation);
        at();
        if (!COMPARISONS[operator](state, left, right)) return false;
        left = right;
      }
      return true;
    }
    default: {
      const left = evaluate(node.left, activation);
      const right = evaluate(node.right, activation);
      at();
      return BINARY[node.typename](state, left, right);
    }
  }
}

/** None is null, so a variable that holds it and one that is missing meet here. */
function readMissing(node: NodeOf<'Symbol'>, activation: Activation): Value {
  return activation.read(node.ref!) === null ? null : OPERATIONS.undefinedName(node.name);
}
