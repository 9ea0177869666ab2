/** A tree -> a function that renders it: a subclass of Nunjucks' Compiler that builds functions, so no code is generated. */
import { type Evaluate, ExpressionCompiler, reader } from './compile-expression.ts';
import { BREAK, CONTINUE, DONE, type Ending, Frame } from './frame.ts';
import { GLOBALS } from './library/library.ts';
import { iterate, unpack } from './python/iterate.ts';
import { type LoopBody, Macro, PyLoop } from './python/macros.ts';
import { Namespace } from './python/objects.ts';
import { overBudget, PyError, syntaxError } from './python/py-error.ts';
import type { RenderState } from './python/render-state.ts';
import { toText } from './python/text.ts';
import { Tuple, Undefined, type Value } from './python/values.ts';
import type { NodeOf, Statement, Target } from './syntax/nodes.ts';
import { type FunctionScope, readNames, Scope } from './syntax/scope.ts';
import { descendants } from './syntax/walk.ts';

type Execute = (frame: Frame) => Ending;
type Assign = (frame: Frame, value: Value) => void;

/** Renders with the variables of the caller. */
export type Root = (state: RenderState, given: ReadonlyMap<string, Value>) => string;

const MAX_BLOCKS = 200;

/** Runs statements until one does not end normally. */
function inOrder(statements: readonly Execute[]): Execute {
  if (statements.length === 1) return statements[0]!;
  return (frame) => {
    for (let i = 0; i < statements.length; i++) {
      const ending = statements[i]!(frame);
      if (ending !== DONE) return ending;
    }
    return DONE;
  };
}

export class TemplateCompiler extends ExpressionCompiler {
  /** Names that the template reads from its input, without globals. */
  readonly variables = new Set<string>();
  hasGeneration = false;
  /** All names that are read or assigned anywhere. Special names are handled only if the template uses them. */
  readonly #names = new Set<string>();
  readonly #blocks = new Set<string>();

  root(node: NodeOf<'Root'>): Root {
    for (const inner of descendants(node))
      if (inner.typename === 'Symbol' || inner.typename === 'TargetName') this.#names.add(inner.name);
    const code: FunctionScope = { outer: null, slotCount: 0 };
    const scope = new Scope(code);
    scope.collect(node.body);
    const body = this.#body(node.body, scope);
    for (const name of scope.inputs.keys()) if (!GLOBALS.has(name)) this.variables.add(name);
    return (state, given) => {
      const frame = new Frame(state, code.slotCount, null);
      for (const [name, slot] of scope.inputs) {
        const value = given.get(name);
        frame.slots[slot] = value === undefined ? GLOBALS.get(name) : value;
      }
      body(frame);
      return frame.text;
    };
  }

  #body(nodes: readonly Statement[], scope: Scope): Execute {
    const statements = nodes.map((node) => {
      this.compile(node, scope);
      return this.compiled as Execute;
    });
    return inOrder(statements);
  }

  #scoped(nodes: readonly Statement[], scope: Scope): Execute {
    scope.collect(nodes);
    return this.#cleared(
      scope,
      this.softly(false, () => this.#body(nodes, scope)),
    );
  }

  /** Runs a scope whose variables have no value at its start and after its end. */
  #cleared(scope: Scope, run: Execute): Execute {
    const slots = scope.assigned;
    if (slots.length === 0) return run;
    return (frame) => {
      for (const slot of slots) frame.slots[slot] = undefined;
      const ending = run(frame);
      for (const slot of slots) frame.slots[slot] = undefined;
      return ending;
    };
  }

  /** Puts the text of statements into `captured`, after its filters. */
  #captured(nodes: readonly Statement[], filter: NodeOf<'Filter'> | null, outer: Scope): Execute {
    const scope = outer.inner();
    scope.collect(filter === null ? nodes : [...nodes, filter]);
    const body = this.softly(false, () => this.#body(nodes, scope));
    if (filter === null) return this.#cleared(scope, (frame) => frame.capture(body));
    const filtered = this.softly(false, () => this.expression(filter, scope));
    return this.#cleared(scope, (frame) => {
      const ending = frame.capture(body);
      if (ending === DONE) frame.captured = filtered(frame);
      return ending;
    });
  }

  #reads(nodes: readonly Statement[], ...names: readonly string[]): ReadonlySet<string> {
    const used = names.filter((name) => this.#names.has(name));
    return used.length === 0 ? new Set() : readNames(nodes, used);
  }

  compileOutput(node: NodeOf<'Output'>, scope: Scope): void {
    const parts = node.children.map((child): Execute => {
      if (child.typename !== 'TemplateData') return this.#print(this.expression(child, scope), child.offset);
      const { text } = child;
      return (frame) => {
        frame.text += frame.state.emit(text);
        return DONE;
      };
    });
    this.compiled = inOrder(parts);
  }

  #print(value: Evaluate, offset: number): Execute {
    return (frame) => {
      const { state } = frame;
      const result = value(frame);
      state.at = offset;
      frame.text += state.emit(typeof result === 'string' ? result : toText(state, result));
      return DONE;
    };
  }

  compileIf(node: NodeOf<'If'>, scope: Scope): void {
    this.softly(true, () => {
      const branches = node.branches.map(({ cond, body }) => ({
        condition: this.condition(cond, scope),
        body: this.#body(body, scope),
      }));
      const otherwise = this.#body(node.otherwise, scope);
      this.compiled = (frame: Frame) => {
        for (let i = 0; i < branches.length; i++) {
          const { condition, body } = branches[i]!;
          if (condition(frame)) return body(frame);
        }
        return otherwise(frame);
      };
    });
  }

  compileFor(node: NodeOf<'For'>, scope: Scope): void {
    this.#refuseLoopTargets(node);
    const code = node.isRecursive ? { outer: scope.code, slotCount: 0 } : scope.code;
    const inner = scope.inner(code, true);
    const usesLoop = node.isRecursive || this.#reads(node.body, 'loop').has('loop');
    const loopSlot = usesLoop ? inner.parameter('loop') : null;
    inner.parameters(node.target);
    const assign = this.#assign(node.target, inner);
    const body = this.#scoped(node.body, inner);
    const otherwise = this.#scoped(node.otherwise, scope.inner(code));
    const items = this.#items(node, scope, code);
    const start = node.iterable.offset;
    const run = (frame: Frame, source: Value, recurse: LoopBody | null, depth0: number): Ending => {
      const { state } = frame;
      state.at = start;
      let isUntouched = true;
      if (loopSlot === null)
        for (const item of items(frame, source)) {
          state.step();
          assign(frame, item);
          const ending = body(frame);
          if (ending === BREAK) break;
          if (ending === DONE) isUntouched = false;
        }
      else {
        const known = node.test === null ? source : null;
        const loop = new PyLoop(state, items(frame, source), known, recurse, depth0);
        while (loop.advance()) {
          frame.slots[loopSlot] = loop;
          assign(frame, loop.current!);
          const ending = body(frame);
          if (ending === BREAK) break;
          if (ending === DONE) isUntouched = false;
        }
      }
      return isUntouched ? otherwise(frame) : DONE;
    };
    const iterable = this.expression(node.iterable, scope);
    if (!node.isRecursive) {
      this.compiled = (frame: Frame) => run(frame, iterable(frame), null, 0);
      return;
    }
    this.compiled = (frame: Frame) => {
      const recurse: LoopBody = (source, depth0) => {
        const called = new Frame(frame.state, code.slotCount, frame);
        run(called, source, recurse, depth0);
        frame.state.reserve(called.text.length);
        return called.text;
      };
      frame.text += frame.state.emit(recurse(iterable(frame), 0));
      return DONE;
    };
  }

  #refuseLoopTargets(node: NodeOf<'For'>): void {
    if (!this.#names.has('loop')) return;
    for (const inner of descendants(node)) {
      const targets = inner.typename === 'For' || inner.typename.startsWith('Set') ? [inner] : [];
      for (const { target } of targets as NodeOf<'For' | 'Set' | 'SetBlock'>[])
        if (descendants(target).some((name) => name.typename === 'TargetName' && name.name === 'loop'))
          syntaxError("Can't assign to special loop variable in for-loop target", target.offset);
    }
  }

  /** Compiles the items of a loop: all, or those that pass its test. */
  #items(
    { target, test }: NodeOf<'For'>,
    scope: Scope,
    code: FunctionScope,
  ): (frame: Frame, source: Value) => Iterable<Value> {
    if (test === null) return (frame, source) => iterate(frame.state, source);
    const inner = scope.inner(code);
    inner.parameters(target);
    inner.collect([test]);
    const assign = this.#assign(target, inner);
    const condition = this.softly(false, () => this.condition(test, inner));
    // The values of a tuple are read once, and the loop gets a new tuple, as in Python.
    const value = (frame: Frame, part: Target): Value =>
      part.typename === 'TargetTuple'
        ? new Tuple(part.items.map((item) => value(frame, item)))
        : (frame.slots[inner.slotOf((part as NodeOf<'TargetName'>).name)] as Value);
    return function* (frame, source) {
      for (const item of iterate(frame.state, source)) {
        frame.state.step();
        assign(frame, item);
        if (condition(frame)) yield value(frame, target);
      }
    };
  }

  #assign(target: Target, scope: Scope): Assign {
    const { offset } = target;
    if (target.typename === 'TargetName') {
      const slot = scope.slotOf(target.name);
      return (frame, value) => {
        frame.slots[slot] = value;
      };
    }
    if (target.typename === 'TargetAttribute') {
      const read = reader(scope.find(target.name));
      return (frame, value) => {
        const namespace = read(frame);
        if (!(namespace instanceof Namespace))
          throw new PyError('RuntimeError', 'cannot assign attribute on non-namespace object', offset);
        namespace.attributes.set(target.attribute, value);
      };
    }
    const parts = target.items.map((item) => this.#assign(item, scope));
    return (frame, value) => {
      frame.state.at = offset;
      const values = unpack(frame.state, value, parts.length);
      for (let i = 0; i < parts.length; i++) parts[i]!(frame, values[i]!);
    };
  }

  compileSet(node: NodeOf<'Set'>, scope: Scope): void {
    const value = this.expression(node.value, scope);
    const assign = this.#assign(node.target, scope);
    this.compiled = (frame: Frame) => {
      assign(frame, value(frame));
      return DONE;
    };
  }

  compileSetBlock({ target, filter, body }: NodeOf<'SetBlock'>, scope: Scope): void {
    const capture = this.#captured(body, filter, scope);
    const assign = this.#assign(target, scope);
    this.compiled = (frame: Frame) => {
      const ending = capture(frame);
      if (ending === DONE) assign(frame, frame.captured);
      return ending;
    };
  }

  compileFilterBlock({ filter, body, offset }: NodeOf<'FilterBlock'>, scope: Scope): void {
    const capture = this.#captured(body, filter, scope);
    const print = this.#print((frame) => frame.captured, offset);
    this.compiled = (frame: Frame) => capture(frame) || print(frame);
  }

  compileMacro(node: NodeOf<'Macro'>, scope: Scope): void {
    const make = this.#macro(node, node.name, scope);
    const slot = scope.slotOf(node.name);
    this.compiled = (frame: Frame) => {
      frame.slots[slot] = make(frame);
      return DONE;
    };
  }

  compileCallBlock(node: NodeOf<'CallBlock'>, scope: Scope): void {
    const caller = this.#macro(node, null, scope);
    this.compiled = this.#print(this.call(node.call, scope, caller), node.offset);
  }

  #macro(node: NodeOf<'Macro'> | NodeOf<'CallBlock'>, name: string | null, scope: Scope): Evaluate {
    const code: FunctionScope = { outer: scope.code, slotCount: 0 };
    const inner = scope.inner(code);
    const parameters = node.parameters.map((parameter) => parameter.name);
    const firstDefault = parameters.length - node.defaults.length;
    const special = this.#reads(node.body, 'caller', 'kwargs', 'varargs');
    const place = parameters.indexOf('caller');
    if (special.has('caller') && place >= 0 && place < firstDefault)
      syntaxError('the special argument "caller" of a macro must be omitted or have a default', node.offset);
    const added = ['caller', 'kwargs', 'varargs'].filter(
      (candidate) => special.has(candidate) && !parameters.includes(candidate),
    );
    const slots = [...parameters, ...added].map((parameter) => inner.parameter(parameter));
    inner.collect([...node.defaults, ...node.body]);
    const [defaults, body] = this.softly(false, () => [
      node.defaults.map((value) => this.expression(value, inner)),
      this.#body(node.body, inner),
    ]);
    const shape = {
      name,
      parameters,
      usesCaller: special.has('caller'),
      usesKwargs: added.includes('kwargs'),
      usesVarargs: added.includes('varargs'),
    };
    return (frame) =>
      new Macro(shape, (args) => {
        const called = new Frame(frame.state, code.slotCount, frame);
        for (let i = 0; i < slots.length; i++) called.slots[slots[i]!] = args[i];
        for (let i = 0; i < parameters.length; i++)
          if (args[i] === undefined)
            called.slots[slots[i]!] =
              i < firstDefault
                ? new Undefined(`parameter '${parameters[i]}' was not provided`)
                : defaults[i - firstDefault]!(called);
        body(called);
        return called.text;
      });
  }

  compileGeneration({ body }: NodeOf<'Generation'>, scope: Scope): void {
    this.hasGeneration = true;
    const run = this.#scoped(body, scope.inner(scope.code, false));
    this.compiled = (frame: Frame) => {
      const marks = frame.state.spanMarks;
      if (marks === null) return run(frame);
      frame.text += marks[0];
      run(frame);
      frame.text += marks[1];
      return DONE;
    };
  }

  compileWith(node: NodeOf<'With'>, scope: Scope): void {
    const inner = scope.inner();
    const values = node.values.map((value) => this.softly(false, () => this.expression(value, scope)));
    for (const target of node.targets) inner.parameters(target);
    const assigns = node.targets.map((target) => this.#assign(target, inner));
    const body = this.#scoped(node.body, inner);
    this.compiled = (frame: Frame) => {
      for (let i = 0; i < values.length; i++) assigns[i]!(frame, values[i]!(frame));
      return body(frame);
    };
  }

  compileBlock(node: NodeOf<'Block'>, scope: Scope): void {
    if (this.#blocks.has(node.name)) syntaxError(`block '${node.name}' defined twice`, node.offset);
    this.#blocks.add(node.name);
    if (this.#blocks.size > MAX_BLOCKS) overBudget('blocks of the template', MAX_BLOCKS);
    this.compiled = this.#scoped(node.body, scope.block());
  }

  compileBreak(node: NodeOf<'Break'>, scope: Scope): void {
    if (!scope.hasLoop) syntaxError("'break' outside loop", node.offset);
    this.compiled = () => BREAK;
  }

  compileContinue(node: NodeOf<'Continue'>, scope: Scope): void {
    if (!scope.hasLoop) syntaxError("'continue' outside loop", node.offset);
    this.compiled = () => CONTINUE;
  }
}
