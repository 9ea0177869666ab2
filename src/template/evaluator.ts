/** A tree with plans -> text, by walking the tree. For hosts that forbid generated code, with the same result. */
import { Activation } from './activation.ts';
import { callFunction, evaluate, filterOn, isTrue } from './evaluate-expression.ts';
import { OPERATIONS } from './operations.ts';
import type { MacroBody } from './python/macros.ts';
import type { RenderState } from './python/render-state.ts';
import type { Value } from './python/values.ts';
import type { VariableContext } from './python/variable-context.ts';
import type { NodeOf, Statement } from './syntax/nodes.ts';
import type {
  Export,
  ForPlan,
  FramePlan,
  FunctionPlan,
  MacroPlan,
  ResolvedTarget,
  VariableRef,
} from './syntax/plans.ts';
import { descendants } from './syntax/walk.ts';

/** The function of a root or a block. */
export type TemplateFunction = (state: RenderState, context: VariableContext) => string;

/** The functions of a template. */
export type TemplateFunctions = {
  readonly root: TemplateFunction;
  readonly blocks: ReadonlyMap<string, TemplateFunction>;
};

/** How a list of statements ended. */
type Ending = 'done' | 'break' | 'continue';

/** The functions of a template. */
export function interpretTemplate(root: NodeOf<'Root'>): TemplateFunctions {
  const plan = root.plan!;
  const bodies = new Map<string, readonly Statement[]>();
  for (const node of descendants(root)) if (node.typename === 'Block') bodies.set(node.name, node.body);
  const run = (
    code: FunctionPlan,
    frame: FramePlan,
    body: readonly Statement[],
    before: (activation: Activation) => void,
  ): TemplateFunction => {
    return (state, context) => {
      const activation = new Activation(state, context, code, null);
      return activation.guard(() => {
        before(activation);
        enter(activation, frame);
        execute(body, activation);
        return activation.text;
      });
    };
  };
  const setSelf = (activation: Activation, ref: VariableRef | null): void => {
    if (ref !== null) activation.write(ref, OPERATIONS.self(activation.state, activation.context));
  };
  return {
    root: run(plan.code, plan.frame, root.body, (activation) => setSelf(activation, plan.self)),
    blocks: new Map(
      plan.blocks.map((block) => [
        block.name,
        run(block.code, block.frame, bodies.get(block.name)!, (activation) => {
          setSelf(activation, block.self);
          if (block.superBlock !== null)
            activation.write(block.superBlock, OPERATIONS.superBlock(block.name));
        }),
      ]),
    ),
  };
}

function enter(activation: Activation, frame: FramePlan): void {
  for (const action of frame.enter) {
    if (action.kind === 'resolve')
      activation.write(action.ref, OPERATIONS.resolve(activation.context, action.name));
    else activation.write(action.ref, action.kind === 'alias' ? activation.read(action.from) : undefined);
  }
}

function leave(activation: Activation, frame: FramePlan): void {
  for (const ref of frame.leave) activation.write(ref, undefined);
}

/** Runs statements with a separate buffer. A `break` or `continue` discards it. */
function capture(body: readonly Statement[], activation: Activation): [text: string, ending: Ending] {
  const outer = activation.text;
  activation.text = '';
  const ending = execute(body, activation);
  const { text } = activation;
  activation.text = outer;
  return [text, ending];
}

function execute(nodes: readonly Statement[], activation: Activation): Ending {
  for (const node of nodes) {
    const ending = executeOne(node, activation);
    if (ending !== 'done') return ending;
  }
  return 'done';
}

function print(activation: Activation, value: Value, mode: boolean | 'dynamic', offset: number): void {
  const { state } = activation;
  activation.at = offset;
  if (mode === false) activation.text += OPERATIONS.print(state, value);
  else
    activation.text +=
      mode === true ? OPERATIONS.printEscaped(state, value) : OPERATIONS.printDynamic(state, value);
}

function executeOne(node: Statement, activation: Activation): Ending {
  return (EXECUTE[node.typename] as Execute<Statement>)(node, activation);
}

type Execute<Node> = (node: Node, activation: Activation) => Ending;

const EXECUTE: { readonly [Type in Statement['typename']]: Execute<NodeOf<Type>> } = {
  Output: (node, activation) => {
    for (const child of node.children) {
      if (child.typename === 'TemplateData') activation.text += OPERATIONS.data(activation.state, child.text);
      else print(activation, evaluate(child, activation), node.plan!.escape, child.offset);
    }
    return 'done';
  },
  If: (node, activation) => {
    for (const branch of node.branches)
      if (isTrue(branch.cond, activation)) return execute(branch.body, activation);
    return execute(node.otherwise, activation);
  },
  For: executeFor,
  Set: (node, activation) => {
    const { target, exports } = node.plan!;
    checkNamespaces(target, activation, node.offset);
    assign(target, evaluate(node.value, activation), activation, node.offset);
    share(exports, activation);
    return 'done';
  },
  SetBlock: (node, activation) => {
    const { target, exports, frame } = node.plan!;
    enter(activation, frame);
    const [text, ending] = capture(node.body, activation);
    if (ending !== 'done') return ending;
    const value =
      node.filter === null
        ? OPERATIONS.captured(activation.state, text)
        : filterOn(node.filter, text, activation);
    checkNamespaces(target, activation, node.offset);
    assign(target, value, activation, node.offset);
    share(exports, activation);
    leave(activation, frame);
    return 'done';
  },
  Macro: (node, activation) => {
    const plan = node.plan!;
    activation.write(plan.target!, OPERATIONS.macro(plan.shape, macroBody(plan, node, activation)));
    share(plan.exports, activation);
    return 'done';
  },
  CallBlock: (node, activation) => {
    const plan = node.plan!;
    const caller = OPERATIONS.macro(plan.shape, macroBody(plan, node, activation));
    if (node.call !== null)
      print(activation, callFunction(node.call, activation, caller), plan.escape, node.offset);
    else {
      activation.at = node.offset;
      print(activation, OPERATIONS.generation(activation.state, caller), plan.escape, node.offset);
    }
    return 'done';
  },
  FilterBlock: (node, activation) => {
    enter(activation, node.plan!);
    const [text, ending] = capture(node.body, activation);
    if (ending !== 'done') return ending;
    print(activation, filterOn(node.filter, text, activation), 'dynamic', node.offset);
    leave(activation, node.plan!);
    return 'done';
  },
  With: (node, activation) => {
    const { frame, targets } = node.plan!;
    enter(activation, frame);
    targets.forEach((target, index) => {
      assign(target, evaluate(node.values[index]!, activation), activation, node.offset);
    });
    const ending = execute(node.body, activation);
    if (ending === 'done') leave(activation, frame);
    return ending;
  },
  Block: executeBlock,
  Autoescape: (node, activation) => {
    enter(activation, node.plan!);
    const before = OPERATIONS.setAutoescape(activation.state, evaluate(node.value, activation));
    const ending = execute(node.body, activation);
    if (ending !== 'done') return ending;
    OPERATIONS.setAutoescape(activation.state, before);
    leave(activation, node.plan!);
    return 'done';
  },
  Break: () => 'break',
  Continue: () => 'continue',
  Loader: (node, activation) => {
    evaluate(node.template, activation);
    activation.at = node.offset;
    return OPERATIONS.loader();
  },
};

/** Makes top-level variables visible to blocks. */
function share(exports: readonly Export[], activation: Activation): void {
  for (const { name, ref } of exports) OPERATIONS.share(activation.context, name, activation.read(ref)!);
}

function executeBlock(node: NodeOf<'Block'>, activation: Activation): Ending {
  const { state, context } = activation;
  activation.at = node.offset;
  if (node.isRequired) OPERATIONS.requiredBlock(node.name);
  let inner = context;
  if (node.plan !== null) {
    const names = node.plan.map((entry) => entry.name);
    const values = node.plan.map((entry) => activation.read(entry.ref));
    inner = context.derive(OPERATIONS.scope(names, values));
  }
  activation.text += OPERATIONS.block(state, node.name, inner);
  return 'done';
}

function assign(target: ResolvedTarget, value: Value, activation: Activation, offset: number): void {
  if (target.kind === 'name') {
    activation.write(target.ref, value);
    return;
  }
  activation.at = offset;
  if (target.kind === 'attribute') OPERATIONS.assign(activation.read(target.ref), target.attribute, value);
  else {
    const parts = OPERATIONS.unpack(activation.state, value, target.items.length);
    target.items.forEach((item, index) => {
      assign(item, parts[index]!, activation, offset);
    });
  }
}

function checkNamespaces(target: ResolvedTarget, activation: Activation, offset: number): void {
  if (target.kind === 'tuple') for (const item of target.items) checkNamespaces(item, activation, offset);
  else if (target.kind === 'attribute') {
    activation.at = offset;
    OPERATIONS.checkNamespace(activation.read(target.ref));
  }
}

function macroBody(
  plan: Omit<MacroPlan, 'target' | 'exports'>,
  node: NodeOf<'Macro'> | NodeOf<'CallBlock'>,
  outer: Activation,
): MacroBody {
  const firstDefault = node.parameters.length - node.defaults.length;
  return (args) => {
    const activation = outer.inner(plan.code);
    return activation.guard(() => {
      plan.arguments.forEach((ref, index) => {
        activation.write(ref, args[index]);
      });
      enter(activation, plan.frame);
      node.parameters.forEach((parameter, index) => {
        const ref = plan.arguments[index]!;
        if (activation.read(ref) !== undefined) return;
        const fallback = node.defaults[index - firstDefault];
        activation.write(
          ref,
          fallback === undefined
            ? OPERATIONS.undefinedParameter(parameter.name)
            : evaluate(fallback, activation),
        );
      });
      execute(node.body, activation);
      return activation.text;
    });
  };
}

function executeFor(node: NodeOf<'For'>, activation: Activation): Ending {
  const plan = node.plan!;
  const { state } = activation;
  if (plan.recursion === null)
    return runLoop(node, plan, evaluate(node.iterable, activation), activation, activation, null, 0);
  const recurse = (iterable: Value, depth0: number): Value => {
    const inner = activation.inner(plan.recursion!);
    return inner.guard(() => {
      runLoop(node, plan, iterable, activation, inner, recurse, depth0);
      return OPERATIONS.captured(state, inner.text);
    });
  };
  print(activation, recurse(evaluate(node.iterable, activation), 0), false, activation.at);
  return 'done';
}

/** Runs a loop in `activation`. Its test runs in a separate function, defined in `testOuter`. */
function runLoop(
  node: NodeOf<'For'>,
  plan: ForPlan,
  iterable: Value,
  testOuter: Activation,
  activation: Activation,
  recurse: ((iterable: Value, depth0: number) => Value) | null,
  depth0: number,
): Ending {
  const { state } = activation;
  activation.at = node.iterable.offset;
  const source = plan.test === null ? iterable : filterItems(node, plan, iterable, testOuter);
  let isUntouched = true;
  const runBody = (item: Value): Ending => {
    assign(plan.target, item, activation, node.offset);
    enter(activation, plan.frame);
    const ending = execute(node.body, activation);
    if (ending === 'done') isUntouched = false;
    return ending;
  };
  if (plan.loop === null) {
    const items = plan.test === null ? OPERATIONS.iterate(state, iterable) : (source as Iterable<Value>);
    for (const item of items) {
      state.step();
      if (runBody(item) === 'break') break;
    }
  } else {
    const loop = OPERATIONS.loop(state, source, plan.test !== null, recurse, depth0);
    while (loop.advance()) {
      activation.write(plan.loop, loop);
      if (runBody(loop.current!) === 'break') break;
    }
  }
  leave(activation, plan.frame);
  if (plan.otherwise === null || !isUntouched) return 'done';
  enter(activation, plan.otherwise);
  const ending = execute(node.otherwise, activation);
  if (ending === 'done') leave(activation, plan.otherwise);
  return ending;
}

function* filterItems(
  node: NodeOf<'For'>,
  plan: ForPlan,
  iterable: Value,
  outer: Activation,
): Generator<Value> {
  const test = plan.test!;
  const activation = outer.inner(test.code);
  const { state } = activation;
  try {
    enter(activation, test.frame);
    for (const item of OPERATIONS.iterate(state, iterable)) {
      state.step();
      assign(test.target, item, activation, node.offset);
      if (isTrue(node.test!, activation)) yield rebuilt(test.target, activation);
    }
  } catch (error) {
    throw OPERATIONS.locate(error, activation.at);
  }
}

function rebuilt(target: ResolvedTarget, activation: Activation): Value {
  if (target.kind === 'tuple') return OPERATIONS.tuple(target.items.map((item) => rebuilt(item, activation)));
  return activation.read(target.ref)!;
}
