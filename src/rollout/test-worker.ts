/** A worker: code and tests of `workerData` -> a message per test, whether it passed. Runs each test in a context of its own. */
import vm from 'node:vm';
import { parentPort, workerData } from 'node:worker_threads';

/** What the worker is given. */
export type TestTask = {
  readonly code: string;
  readonly tests: readonly string[];
  /** For all tests together. */
  readonly timeoutMs: number;
};

/** Errors that Node makes lead from the context to the worker's own functions: without these, not to code made of text. */
function removeFunctionConstructors(): void {
  for (const one of [() => {}, async () => {}, function* () {}, async function* () {}])
    Reflect.deleteProperty(Object.getPrototypeOf(one) as object, 'constructor');
}

function passes(code: string, test: string, timeout: number): boolean {
  const context = vm.createContext(Object.create(null) as vm.Context, {
    codeGeneration: { strings: false, wasm: false },
    microtaskMode: 'afterEvaluate',
  });
  try {
    return vm.runInContext(`${code}\n;(${test}\n)`, context, { timeout }) === true;
  } catch {
    return false;
  }
}

const { code, tests, timeoutMs } = workerData as TestTask;
process.on('unhandledRejection', () => {}); // of the code: no failure of the worker
removeFunctionConstructors();
const end = performance.now() + timeoutMs;
for (const test of tests) {
  const left = Math.ceil(end - performance.now());
  parentPort!.postMessage(left > 0 && passes(code, test, left));
}
