/** A worker: code and tests of `workerData` -> a message per test with its result. Each test runs in a new context. */
import vm from 'node:vm';
import { parentPort, workerData } from 'node:worker_threads';

/** Input of the worker. */
export type TestTask = {
  readonly code: string;
  readonly tests: readonly string[];
  /** Time for all tests together. */
  readonly timeoutMs: number;
};

/**
 * Removes function constructors. Errors of Node lead from the context to the worker's own functions; without constructors these cannot make
 * code from text.
 */
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
process.on('unhandledRejection', () => {}); // rejections in the tested code do not fail the worker
removeFunctionConstructors();
const end = performance.now() + timeoutMs;
for (const test of tests) {
  const left = Math.ceil(end - performance.now());
  parentPort!.postMessage(left > 0 && passes(code, test, left));
}
