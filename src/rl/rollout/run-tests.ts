/** Code of an answer and its tests -> how many pass. Each answer runs in a new worker with limits. */
import { Worker } from 'node:worker_threads';
import { packageFile } from '../../common/index.ts';
import type { TestTask } from './test-worker.ts';

/** Milliseconds for starting a worker, in addition to those for its tests. */
const START_MS = 2000;

/** Returns the number of tests that passed. If a worker dies, the tests that it reported as passed count. */
export async function runTests(task: TestTask, memoryMb: number): Promise<number> {
  const worker = new Worker(packageFile('dist/rl/rollout/test-worker.js'), {
    workerData: task,
    resourceLimits: { maxOldGenerationSizeMb: memoryMb, maxYoungGenerationSizeMb: Math.ceil(memoryMb / 4) },
    env: {},
    execArgv: [], // flags of the host, such as loaders, are not for this worker
    stdout: true,
    stderr: true,
  });
  let passed = 0;
  const timer = setTimeout(() => void worker.terminate(), task.timeoutMs + START_MS);
  return await new Promise<number>((resolve, reject) => {
    let failure: NodeJS.ErrnoException | null = null;
    worker.on('message', (isPassed: boolean) => {
      passed += Number(isPassed);
    });
    worker.on('error', (error) => {
      failure = error;
    });
    worker.on('exit', () => {
      clearTimeout(timer);
      if (failure && failure.code !== 'ERR_WORKER_OUT_OF_MEMORY') reject(failure);
      else resolve(passed);
    });
  });
}
