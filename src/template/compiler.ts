/** A tree with plans -> JavaScript, by a subclass of Nunjucks' Compiler. The code contains no text of the template. */
import { ExpressionCompiler, variable } from './compile-expression.ts';
import { OPERATIONS } from './operations.ts';
import type { NodeOf, Statement } from './syntax/nodes.ts';
import type {
  BlockPlan,
  CallBlockPlan,
  Export,
  ForPlan,
  FramePlan,
  FunctionPlan,
  MacroPlan,
  ResolvedTarget,
} from './syntax/plans.ts';
import { descendants } from './syntax/walk.ts';

/** Generated code with the constants it refers to as k[0], k[1], … */
export type CompiledCode = { readonly code: string; readonly constants: readonly unknown[] };

const PRINTERS = { false: 'print', true: 'printEscaped', dynamic: 'printDynamic' } as const;

/** Compiles one template: `compile(root)` fills the code buffer, `result()` returns the code. */
export class TemplateCompiler extends ExpressionCompiler {
  /** The code, after a check that it contains only known words. */
  result(): CompiledCode {
    const names = this.constants.map((_, index) => `k${index}=k[${index}]`);
    const head = names.length === 0 ? '' : `var ${names.join(',')};\n`;
    const code = head + this.getCode();
    checkClosed(code);
    return { code, constants: this.constants };
  }

  compileRoot(node: NodeOf<'Root'>): void {
    const plan = node.plan!;
    this.#topFunction(plan.code, plan.frame, node.body, () => {
      if (plan.self !== null) this._emitLine(`${variable(plan.self)}=o.self(s,c);`);
    });
    const bodies = new Map<string, readonly Statement[]>();
    if (plan.blocks.length > 0)
      for (const inner of descendants(node))
        if (inner.typename === 'Block') bodies.set(inner.name, inner.body);
    for (const block of plan.blocks) this.#blockFunction(block, bodies.get(block.name)!);
    const blocks = plan.blocks.map((block) => `[${this.constant(block.name)},f${block.code.functionId}]`);
    this._emitLine(`return [f${plan.code.functionId},[${blocks.join(',')}]];`);
  }

  #blockFunction(block: BlockPlan, body: readonly Statement[]): void {
    this.#topFunction(block.code, block.frame, body, () => {
      if (block.self !== null) this._emitLine(`${variable(block.self)}=o.self(s,c);`);
      if (block.superBlock !== null)
        this._emitLine(`${variable(block.superBlock)}=o.superBlock(${this.constant(block.name)});`);
    });
  }

  #topFunction(code: FunctionPlan, frame: FramePlan, body: readonly Statement[], before: () => void): void {
    this.#function(`function f${code.functionId}(s,c)`, code, () => {
      before();
      this.#enter(frame);
      const buffer = this._pushBuffer();
      this.#statements(body);
      this._popBuffer();
      this._emitLine(`return ${buffer};`);
    });
  }

  /** A function whose errors get the position `at`, which is set before each operation. */
  #function(head: string, code: FunctionPlan, body: () => void): void {
    const outer = this.temporaries;
    this.temporaries = [];
    const { codebuf } = this as unknown as { codebuf: string[] };
    const place = codebuf.length;
    this._emit('');
    body();
    this._emitLine('}catch(e){throw o.locate(e,at);}}');
    const slots = Array.from({ length: code.slotCount }, (_, slot) => `,v${code.functionId}_${slot}`);
    const names = this.temporaries.map((name) => `,${name}`);
    codebuf[place] = `${head}{var at=0${slots.join('')}${names.join('')};\ntry{\n`;
    this.temporaries = outer;
  }

  #statements(nodes: readonly Statement[]): void {
    for (const node of nodes) this.compile(node);
  }

  #enter(frame: FramePlan): void {
    for (const action of frame.enter) {
      const target = variable(action.ref);
      if (action.kind === 'resolve') this._emitLine(`${target}=o.resolve(c,${this.constant(action.name)});`);
      else if (action.kind === 'alias') this._emitLine(`${target}=${variable(action.from)};`);
      else this._emitLine(`${target}=void 0;`);
    }
  }

  #leave(frame: FramePlan): void {
    if (frame.leave.length > 0) this._emitLine(`${frame.leave.map(variable).join('=')}=void 0;`);
  }

  /** Writes statements with a separate buffer and returns its name. */
  #capture(body: readonly Statement[]): string {
    const buffer = this._pushBuffer();
    this.#statements(body);
    this._popBuffer();
    return buffer;
  }

  compileOutput(node: NodeOf<'Output'>): void {
    const printer = PRINTERS[`${node.plan!.escape}`];
    for (const child of node.children) {
      if (child.typename === 'TemplateData') {
        this._emitLine(`${this.buffer}+=o.data(s,${this.constant(child.text)});`);
        continue;
      }
      this._emit(`${this.buffer}+=o.${printer}(s,`);
      this.compile(child);
      this._emitLine(`,at=${child.offset});`);
    }
  }

  compileIf(node: NodeOf<'If'>): void {
    node.branches.forEach((branch, index) => {
      this._emit(index === 0 ? 'if(' : '}else if(');
      this.emitTruth(branch.cond);
      this._emitLine('){');
      this.#statements(branch.body);
    });
    if (node.otherwise.length > 0) {
      this._emitLine('}else{');
      this.#statements(node.otherwise);
    }
    this._emitLine('}');
  }

  compileFor(node: NodeOf<'For'>): void {
    const plan = node.plan!;
    if (plan.test !== null) this.#loopTest(node, plan);
    if (plan.recursion === null) {
      this.#loop(node, plan, () => this.compile(node.iterable), 'null,0');
      return;
    }
    const { recursion } = plan;
    const name = `f${recursion.functionId}`;
    const depth = this._tmpid();
    const source = this._tmpid();
    this.#function(`function ${name}(${source},${depth})`, recursion, () => {
      const buffer = this._pushBuffer();
      this.#loop(node, plan, () => this._emit(source), `${name},${depth}`);
      this._popBuffer();
      this._emitLine(`return o.captured(s,${buffer});`);
    });
    this._emit(`${this.buffer}+=o.print(s,${name}(`);
    this.compile(node.iterable);
    this._emitLine(',0));');
  }

  /** The generator of the items that pass a loop's test. */
  #loopTest(node: NodeOf<'For'>, plan: ForPlan): void {
    const { code, target, frame } = plan.test!;
    const source = this._tmpid();
    const item = this._tmpid();
    this.#function(`function*f${code.functionId}(${source})`, code, () => {
      this.#enter(frame);
      this._emitLine(`for(var ${item} of o.iterate(s,${source})){s.step();`);
      this.#assign(target, item, node.offset);
      this._emit('if(');
      this.emitTruth(node.test!);
      this._emitLine(`)yield ${this.#rebuilt(target)};}`);
    });
  }

  /** A loop target as a value; tuples are new, as in Python. */
  #rebuilt(target: ResolvedTarget): string {
    if (target.kind !== 'tuple') return variable(target.ref);
    return `o.tuple([${target.items.map((item) => this.#rebuilt(item)).join(',')}])`;
  }

  #loop(node: NodeOf<'For'>, plan: ForPlan, source: () => void, recurse: string): void {
    const item = this._tmpid();
    const isUntouched = plan.otherwise === null ? null : this._tmpid();
    if (isUntouched !== null) this._emitLine(`var ${isUntouched}=true;`);
    const filtered = (): void => {
      if (plan.test !== null) this._emit(`f${plan.test.code.functionId}(`);
      source();
      if (plan.test !== null) this._emit(')');
    };
    if (plan.loop === null) {
      this._emit(`for(var ${item} of ${plan.test === null ? 'o.iterate(s,' : '('}`);
      filtered();
      this._emitLine(`${plan.test === null ? `,at=${node.iterable.offset}` : ''})){s.step();`);
      this.#assign(plan.target, item, node.offset);
    } else {
      const loop = variable(plan.loop);
      this._emit(`var ${item}=o.loop(s,`);
      filtered();
      this._emitLine(`,${plan.test !== null},${recurse},at=${node.iterable.offset});`);
      this._emitLine(`while(${item}.advance()){${loop}=${item};`);
      this.#assign(plan.target, `${item}.current`, node.offset);
    }
    this.#enter(plan.frame);
    this.#statements(node.body);
    if (isUntouched !== null) this._emitLine(`${isUntouched}=false;`);
    this._emitLine('}');
    this.#leave(plan.frame);
    if (isUntouched === null) return;
    this._emitLine(`if(${isUntouched}){`);
    this.#enter(plan.otherwise!);
    this.#statements(node.otherwise);
    this.#leave(plan.otherwise!);
    this._emitLine('}');
  }

  /** Assigns the value of a JavaScript expression to a target. */
  #assign(target: ResolvedTarget, source: string, offset: number): void {
    if (target.kind === 'name') this._emitLine(`${variable(target.ref)}=${source};`);
    else if (target.kind === 'attribute')
      this._emitLine(
        `o.assign(${variable(target.ref)},${this.constant(target.attribute)},${source},at=${offset});`,
      );
    else {
      const parts = this._tmpid();
      this._emitLine(`var ${parts}=o.unpack(s,${source},${target.items.length},at=${offset});`);
      target.items.forEach((item, index) => {
        this.#assign(item, `${parts}[${index}]`, offset);
      });
    }
  }

  #checkNamespaces(target: ResolvedTarget, offset: number): void {
    if (target.kind === 'attribute')
      this._emitLine(`o.checkNamespace(${this.readVariable(target.ref, target.name)},at=${offset});`);
    else if (target.kind === 'tuple') for (const item of target.items) this.#checkNamespaces(item, offset);
  }

  #export(exports: readonly Export[]): void {
    for (const { name, ref } of exports)
      this._emitLine(`o.share(c,${this.constant(name)},${variable(ref)});`);
  }

  compileSet(node: NodeOf<'Set'>): void {
    const { target, exports } = node.plan!;
    this.#checkNamespaces(target, node.offset);
    if (target.kind === 'name') {
      this._emit(`${variable(target.ref)}=`);
      this.compile(node.value);
      this._emitLine(';');
    } else {
      const value = this._tmpid();
      this._emit(`var ${value}=`);
      this.compile(node.value);
      this._emitLine(';');
      this.#assign(target, value, node.offset);
    }
    this.#export(exports);
  }

  compileSetBlock(node: NodeOf<'SetBlock'>): void {
    const { target, exports, frame } = node.plan!;
    this.#enter(frame);
    const buffer = this.#capture(node.body);
    const value = this._tmpid();
    this._emit(`var ${value}=`);
    if (node.filter === null) this._emit(`o.captured(s,${buffer})`);
    else this.#filterOn(node.filter, buffer);
    this._emitLine(';');
    this.#checkNamespaces(target, node.offset);
    this.#assign(target, value, node.offset);
    this.#export(exports);
    this.#leave(frame);
  }

  /** Writes the code of a macro or call block; returns the expression that creates the macro. */
  #macro(plan: Omit<MacroPlan, 'target' | 'exports'>, node: NodeOf<'Macro'> | NodeOf<'CallBlock'>): string {
    const name = `f${plan.code.functionId}`;
    this.#function(`function ${name}(a)`, plan.code, () => {
      plan.arguments.forEach((ref, index) => {
        this._emitLine(`${variable(ref)}=a[${index}];`);
      });
      this.#enter(plan.frame);
      const firstDefault = node.parameters.length - node.defaults.length;
      node.parameters.forEach((parameter, index) => {
        const ref = variable(plan.arguments[index]!);
        this._emit(`if(${ref}===void 0)${ref}=`);
        const fallback = node.defaults[index - firstDefault];
        if (fallback === undefined) this._emit(`o.undefinedParameter(${this.constant(parameter.name)})`);
        else this.compile(fallback);
        this._emitLine(';');
      });
      const buffer = this.#capture(node.body);
      this._emitLine(`return ${buffer};`);
    });
    return `o.macro(${this.constant(plan.shape)},${name})`;
  }

  compileMacro(node: NodeOf<'Macro'>): void {
    const plan = node.plan!;
    const made = this.#macro(plan, node);
    this._emitLine(`${variable(plan.target!)}=${made};`);
    this.#export(plan.exports);
  }

  compileCallBlock(node: NodeOf<'CallBlock'>): void {
    const plan: CallBlockPlan = node.plan!;
    const caller = this._tmpid();
    const made = this.#macro(plan, node);
    this._emitLine(`var ${caller}=${made};`);
    this._emit(`${this.buffer}+=o.${PRINTERS[`${plan.escape}`]}(s,`);
    if (node.call === null) this._emit(`o.generation(s,${caller},at=${node.offset})`);
    else this.emitCall(node.call, caller);
    this._emitLine(');');
  }

  compileFilterBlock(node: NodeOf<'FilterBlock'>): void {
    const frame = node.plan!;
    this.#enter(frame);
    const buffer = this.#capture(node.body);
    this._emit(`${this.buffer}+=o.printDynamic(s,`);
    this.#filterOn(node.filter, buffer);
    this._emitLine(');');
    this.#leave(frame);
  }

  /** Applies a chain of filters to the text of a buffer. */
  #filterOn(filter: NodeOf<'Filter'>, buffer: string): void {
    this.emitFilter(filter, () => {
      if (filter.target === null) this._emit(`o.captured(s,${buffer})`);
      else this.#filterOn(filter.target as NodeOf<'Filter'>, buffer);
    });
  }

  compileWith(node: NodeOf<'With'>): void {
    const { frame, targets } = node.plan!;
    this.#enter(frame);
    targets.forEach((target, index) => {
      const value = this._tmpid();
      this._emit(`var ${value}=`);
      this.compile(node.values[index]!);
      this._emitLine(';');
      this.#assign(target, value, node.offset);
    });
    this.#statements(node.body);
    this.#leave(frame);
  }

  compileBlock(node: NodeOf<'Block'>): void {
    if (node.isRequired) this._emitLine(`o.requiredBlock(${this.constant(node.name)},at=${node.offset});`);
    let context = 'c';
    if (node.plan !== null) {
      const names = this.constant(node.plan.map((entry) => entry.name));
      context = `c.derive(o.scope(${names},[${node.plan.map((entry) => variable(entry.ref)).join(',')}]))`;
    }
    this._emitLine(`${this.buffer}+=o.block(s,${this.constant(node.name)},${context});`);
  }

  compileAutoescape(node: NodeOf<'Autoescape'>): void {
    const before = this._tmpid();
    this.#enter(node.plan!);
    this._emit(`var ${before}=o.setAutoescape(s,`);
    this.compile(node.value);
    this._emitLine(');');
    this.#statements(node.body);
    this._emitLine(`o.setAutoescape(s,${before});`);
    this.#leave(node.plan!);
  }

  compileBreak(): void {
    this._emitLine('break;');
  }

  compileContinue(): void {
    this._emitLine('continue;');
  }

  compileLoader(node: NodeOf<'Loader'>): void {
    this._emit('o.loader(');
    this.compile(node.template);
    this._emitLine(`,at=${node.offset});`);
  }
}

/** Words of generated code, besides numbered names. */
const WORDS = new Set(
  (
    'function var return try catch throw for of while if else true false null void break continue yield ' +
    'a at c e f k o s step advance current derive'
  ).split(' '),
);
const NUMBERED = /^(?:[fk]\d+|v\d+_\d+|t_\d+)$/;

/** Defence in depth: code with any other word, or a string literal other than "", is a bug and never runs. */
function checkClosed(code: string): void {
  for (const word of new Set(code.match(/[A-Za-z_$][\w$]*/g)))
    if (!WORDS.has(word) && !NUMBERED.test(word) && !Object.hasOwn(OPERATIONS, word))
      throw new Error(`generated code holds the word ${word}`);
  if (/[^\w\s(){}[\],;:?=!.+*>&]/.test(code.replaceAll('""', '')))
    throw new Error('generated code holds a literal');
}
