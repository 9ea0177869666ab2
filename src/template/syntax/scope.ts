/** A tree -> the tree with plans: a slot for each variable, entry and exit actions for each scope. Reports static errors. */

import { FILTERS, GLOBALS, TESTS } from '../library/library.ts';
import { overBudget, PyError } from '../python/py-error.ts';
import { type Frame, FunctionScope } from './function-scope.ts';
import type { AnyNode, Arguments, Expression, NodeOf, Statement, Target } from './nodes.ts';
import type {
  BlockPlan,
  EnterAction,
  Export,
  FramePlan,
  MacroPlan,
  ResolvedTarget,
  RootPlan,
  VariableRef,
} from './plans.ts';
import { collect, collectTarget, findUndeclared, Symbols } from './symbols.ts';
import { descendants, visitChildren } from './walk.ts';

/** Maximum number of variables around a scoped block, which copies all of them. */
const MAX_BLOCKS = 200;

/** Plans a whole template in place. */
export function planScopes(root: NodeOf<'Root'>): RootPlan {
  return new ScopePass().planRoot(root);
}

function fail(message: string, node: AnyNode): never {
  throw new PyError('SyntaxError', message, node.offset);
}

class ScopePass {
  #functionCount = 0;
  readonly #variables = new Set<string>();
  readonly #blocks: NodeOf<'Block'>[] = [];
  /** All names that are read anywhere. */
  readonly #usedNames = new Set<string>();
  /** Macro parameters and names of `with`. Only these may be named `loop`. */
  readonly #parameters = new Set<AnyNode>();
  /** Whether any assignment in the template goes to a name `loop`. */
  #hasLoopTargets = false;
  #escape: boolean | 'dynamic' = false;

  planRoot(root: NodeOf<'Root'>): RootPlan {
    this.#findBlocks(root);
    const code = this.#function(null);
    const symbols = new Symbols(null);
    if (this.#undeclared(root.body, 'self').has('self')) symbols.declareParameter('self');
    collect(symbols, root.body);
    const frame = this.#frame(symbols, code, { isTopLevel: true });
    const plan = this.#enter(frame);
    this.#statements(root.body, frame);
    const blocks = this.#blocks.map((block) => this.#block(block));
    const self = this.#parameter(frame, 'self');
    root.plan = { code: code.plan, frame: plan, self, blocks, variables: this.#variables };
    return root.plan;
  }

  #findBlocks(root: NodeOf<'Root'>): void {
    const names = new Set<string>();
    for (const node of descendants(root)) {
      if (node.typename === 'TargetName' && node.name === 'loop') this.#hasLoopTargets = true;
      if (node.typename === 'Symbol') this.#usedNames.add(node.name);
      if (node.typename === 'Macro' || node.typename === 'CallBlock')
        for (const parameter of node.parameters) this.#parameters.add(parameter);
      if (node.typename === 'With')
        for (const target of node.targets) for (const name of descendants(target)) this.#parameters.add(name);
      if (node.typename !== 'Block') continue;
      if (names.has(node.name)) fail(`block '${node.name}' defined twice`, node);
      names.add(node.name);
      if (names.size > MAX_BLOCKS) overBudget('blocks of the template', MAX_BLOCKS);
      this.#blocks.push(node);
    }
  }

  #block(block: NodeOf<'Block'>): BlockPlan {
    const code = this.#function(null);
    const symbols = new Symbols(null);
    const special = this.#undeclared(block.body, 'self', 'super');
    for (const name of ['self', 'super']) if (special.has(name)) symbols.declareParameter(name);
    collect(symbols, block.body);
    const frame = this.#frame(symbols, code, {});
    const plan = this.#enter(frame);
    this.#statements(block.body, frame);
    return {
      name: block.name,
      code: code.plan,
      frame: plan,
      self: special.has('self') ? this.#parameter(frame, 'self') : null,
      superBlock: special.has('super') ? this.#parameter(frame, 'super') : null,
    };
  }

  /** Which of the names the nodes read without assigning them first. */
  #undeclared(nodes: readonly Statement[], ...names: readonly string[]): ReadonlySet<string> {
    const used = names.filter((name) => this.#usedNames.has(name));
    return used.length === 0 ? new Set() : findUndeclared(nodes, used);
  }

  #function(parent: FunctionScope | null): FunctionScope {
    return new FunctionScope(this.#functionCount++, parent);
  }

  #frame(symbols: Symbols, code: FunctionScope, rest: Partial<Frame>): Frame {
    return { symbols, code, isTopLevel: false, isSoft: false, hasLoop: false, pending: null, ...rest };
  }

  /** A scope inside `frame`, in the same function or a new one. */
  #inner(frame: Frame, code: FunctionScope = frame.code): Frame {
    const hasLoop = code === frame.code && frame.hasLoop;
    return this.#frame(new Symbols(frame.symbols), code, { hasLoop });
  }

  /** A parameter of this scope, or null. */
  #parameter(frame: Frame, name: string): VariableRef | null {
    const identifier = frame.symbols.find(name);
    if (identifier === undefined || frame.symbols.loads.get(identifier)?.kind !== 'parameter') return null;
    return frame.code.find(identifier);
  }

  /** Assigns slots to the variables of a scope and plans their values on entry. */
  #enter(frame: Frame): FramePlan {
    const { code, symbols } = frame;
    for (const identifier of symbols.loads.keys()) code.declare(identifier);
    const enter: EnterAction[] = [];
    const leave: VariableRef[] = [];
    for (const [identifier, load] of symbols.loads) {
      const ref = code.find(identifier);
      leave.push(ref);
      if (load.kind === 'alias') enter.push({ kind: 'alias', ref, from: code.find(load.from) });
      else if (load.kind === 'clear') enter.push({ kind: 'clear', ref });
      else if (load.kind === 'resolve') {
        enter.push({ kind: 'resolve', ref, name: load.name });
        if (!GLOBALS.has(load.name)) this.#variables.add(load.name);
      }
    }
    return { enter, leave };
  }

  #statements(nodes: readonly Statement[], frame: Frame): void {
    for (const node of nodes) this.#statement(node, frame);
  }

  #statement(node: Statement, frame: Frame): void {
    switch (node.typename) {
      case 'Output':
        node.plan = { escape: this.#escape };
        for (const child of node.children)
          if (child.typename !== 'TemplateData') this.#expression(child, frame);
        return;
      case 'If': {
        const soft = { ...frame, isSoft: true };
        for (const branch of node.branches) {
          this.#expression(branch.cond, soft);
          this.#statements(branch.body, soft);
        }
        this.#statements(node.otherwise, soft);
        return;
      }
      case 'For':
        this.#for(node, frame);
        return;
      case 'Set':
        this.#expression(node.value, frame);
        node.plan = { target: this.#target(node.target, frame), exports: this.#exports(node.target, frame) };
        return;
      case 'SetBlock': {
        const inner = this.#inner(frame);
        collect(inner.symbols, node.body);
        // The filter's names belong to the scope of the body, but Jinja2 does not collect them there.
        if (node.filter !== null) collect(inner.symbols, [node.filter]);
        const plan = this.#enter(inner);
        this.#statements(node.body, inner);
        if (node.filter !== null) this.#expression(node.filter, inner);
        const target = this.#target(node.target, frame);
        node.plan = { target, exports: this.#exports(node.target, frame), frame: plan };
        return;
      }
      case 'Macro': {
        const identifier = frame.symbols.find(node.name)!;
        const target = frame.code.find(identifier);
        const exports = frame.isTopLevel ? [{ name: node.name, ref: target }] : [];
        node.plan = { ...this.#macro(node, node.name, frame), target, exports };
        return;
      }
      case 'CallBlock':
        node.plan = { ...this.#macro(node, null, frame), escape: this.#escape };
        if (node.call !== null) this.#expression(node.call, frame);
        return;
      case 'FilterBlock': {
        const inner = this.#inner(frame);
        collect(inner.symbols, [...node.body, node.filter]);
        node.plan = this.#enter(inner);
        this.#statements(node.body, inner);
        this.#expression(node.filter, inner);
        return;
      }
      case 'With':
        this.#with(node, frame);
        return;
      case 'Block':
        if (node.isScoped)
          node.plan = [...frame.symbols.visibleStores()].map(([name, identifier]) => ({
            name,
            ref: frame.code.find(identifier),
          }));
        return;
      case 'Autoescape':
        this.#autoescape(node, frame);
        return;
      case 'Break':
      case 'Continue':
        if (!frame.hasLoop) fail(`'${node.typename.toLowerCase()}' outside loop`, node);
        return;
      case 'Loader':
        this.#expression(node.template, frame);
        return;
    }
  }

  #for(node: NodeOf<'For'>, frame: Frame): void {
    if (this.#hasLoopTargets)
      for (const inner of descendants(node))
        if (inner.typename === 'TargetName' && inner.name === 'loop' && !this.#parameters.has(inner))
          fail("Can't assign to special loop variable in for-loop target", inner);
    const hasScopedBlock =
      this.#blocks.length > 0 &&
      descendants(node).some((inner) => inner.typename === 'Block' && inner.isScoped);
    const usesLoop = node.isRecursive || hasScopedBlock || this.#undeclared(node.body, 'loop').has('loop');
    const recursion = node.isRecursive ? this.#function(frame.code) : null;
    const body = { ...this.#inner(frame, recursion ?? frame.code), hasLoop: true };
    if (usesLoop) body.symbols.declareParameter('loop');
    collectTarget(body.symbols, node.target, true);
    collect(body.symbols, node.body);
    const otherwise = this.#inner(frame, body.code);
    collect(otherwise.symbols, node.otherwise);
    const test = node.test === null ? null : this.#loopTest(node.target, node.test, frame);
    this.#expression(node.iterable, frame);
    const plan = this.#enter(body);
    const target = this.#target(node.target, body);
    this.#statements(node.body, body);
    let otherwisePlan: FramePlan | null = null;
    if (node.otherwise.length > 0) {
      otherwisePlan = this.#enter(otherwise);
      this.#statements(node.otherwise, otherwise);
    }
    node.plan = {
      loop: usesLoop ? body.code.find(body.symbols.find('loop')!) : null,
      target,
      frame: plan,
      otherwise: otherwisePlan,
      test,
      recursion: recursion?.plan ?? null,
    };
  }

  #loopTest(target: Target, test: Expression, frame: Frame) {
    const code = this.#function(frame.code);
    const inner = this.#inner(frame, code);
    collectTarget(inner.symbols, target, true);
    collect(inner.symbols, [test]);
    const plan = this.#enter(inner);
    this.#expression(test, inner);
    return { code: code.plan, target: this.#target(target, inner), frame: plan };
  }

  #macro(
    node: NodeOf<'Macro'> | NodeOf<'CallBlock'>,
    name: string | null,
    frame: Frame,
  ): Omit<MacroPlan, 'target' | 'exports'> {
    const code = this.#function(frame.code);
    const inner = this.#inner(frame, code);
    for (const parameter of node.parameters) inner.symbols.declareParameter(parameter.name);
    collect(inner.symbols, [...node.defaults, ...node.body]);
    const parameters = node.parameters.map((parameter) => parameter.name);
    const undeclared = this.#undeclared(node.body, 'caller', 'kwargs', 'varargs');
    const names = [...parameters];
    const usesCaller = undeclared.has('caller');
    if (usesCaller) {
      const place = parameters.indexOf('caller');
      if (place < 0) names.push('caller');
      else if (place < parameters.length - node.defaults.length)
        fail(
          'When defining macros or call blocks the special "caller" argument must be omitted or be given a default.',
          node,
        );
    }
    const usesKwargs = undeclared.has('kwargs') && !parameters.includes('kwargs');
    const usesVarargs = undeclared.has('varargs') && !parameters.includes('varargs');
    if (usesKwargs) names.push('kwargs');
    if (usesVarargs) names.push('varargs');
    for (const special of names.slice(parameters.length)) inner.symbols.declareParameter(special);
    const plan = this.#enter(inner);
    const pending = new Set(parameters.map((parameter) => inner.symbols.find(parameter)!));
    for (const value of node.defaults) this.#expression(value, { ...inner, pending });
    this.#statements(node.body, inner);
    return {
      shape: { name, parameters, usesCaller, usesKwargs, usesVarargs },
      code: code.plan,
      frame: plan,
      arguments: names.map((argument) => code.find(inner.symbols.find(argument)!)),
    };
  }

  #with(node: NodeOf<'With'>, frame: Frame): void {
    const inner = this.#inner(frame);
    for (const target of node.targets) collectTarget(inner.symbols, target, true);
    collect(inner.symbols, node.body);
    for (const value of node.values) this.#expression(value, frame);
    const plan = this.#enter(inner);
    node.plan = { frame: plan, targets: node.targets.map((target) => this.#target(target, inner)) };
    this.#statements(node.body, inner);
  }

  #autoescape(node: NodeOf<'Autoescape'>, frame: Frame): void {
    const inner = this.#inner(frame);
    collect(inner.symbols, [node.value, ...node.body]);
    node.plan = this.#enter(inner);
    this.#expression(node.value, inner);
    const outer = this.#escape;
    const { value } = node;
    this.#escape = value.typename === 'Literal' && typeof value.value === 'boolean' ? value.value : 'dynamic';
    this.#statements(node.body, inner);
    this.#escape = outer;
  }

  #target(target: Target, frame: Frame): ResolvedTarget {
    const refOf = (name: string): VariableRef => frame.code.find(frame.symbols.find(name)!);
    switch (target.typename) {
      case 'TargetName':
        return { kind: 'name', ref: refOf(target.name) };
      case 'TargetAttribute':
        return { kind: 'attribute', ref: refOf(target.name), name: target.name, attribute: target.attribute };
      case 'TargetTuple':
        return { kind: 'tuple', items: target.items.map((item) => this.#target(item, frame)) };
    }
  }

  #exports(target: Target, frame: Frame): Export[] {
    if (!frame.isTopLevel || target.typename === 'TargetAttribute') return [];
    if (target.typename === 'TargetTuple') return target.items.flatMap((item) => this.#exports(item, frame));
    return [{ name: target.name, ref: frame.code.find(frame.symbols.find(target.name)!) }];
  }

  #expression(node: Expression, frame: Frame): void {
    switch (node.typename) {
      case 'Symbol': {
        const identifier = frame.symbols.find(node.name)!;
        node.ref = frame.code.find(identifier);
        node.isAlwaysSet =
          frame.symbols.findLoad(identifier)?.kind === 'parameter' && !frame.pending?.has(identifier);
        return;
      }
      case 'Filter':
        if (!FILTERS.has(node.name) && !frame.isSoft) fail(`No filter named '${node.name}'.`, node);
        if (node.target !== null) this.#expression(node.target, frame);
        this.#arguments(node.args, frame);
        return;
      case 'Is':
        if (!TESTS.has(node.name) && !frame.isSoft) fail(`No test named '${node.name}'.`, node);
        this.#expression(node.target, frame);
        this.#arguments(node.args, frame);
        return;
      case 'FunCall':
        this.#expression(node.callee, frame);
        this.#arguments(node.args, frame);
        return;
      case 'InlineIf': {
        const soft = { ...frame, isSoft: true };
        this.#expression(node.cond, soft);
        this.#expression(node.body, soft);
        if (node.otherwise !== null) this.#expression(node.otherwise, soft);
        return;
      }
      default:
        visitChildren(node, (child) => this.#expression(child as Expression, frame));
    }
  }

  #arguments(args: Arguments, frame: Frame): void {
    for (const value of args.positional) this.#expression(value, frame);
    for (const keyword of args.keywords) this.#expression(keyword.value, frame);
    if (args.spread !== null) this.#expression(args.spread, frame);
    if (args.spreadKeywords !== null) this.#expression(args.spreadKeywords, frame);
  }
}
