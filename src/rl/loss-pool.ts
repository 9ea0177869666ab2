/** Rows of a step -> their policy losses, computed on worker threads. A worker that dies is replaced and its row redone. */
import type { Piscina } from 'piscina';
import { packageFile } from '../common/index.ts';
import { OnpolicyError } from '../errors.ts';
import type { PolicyLossInputs } from '../protocol/index.ts';
import type { RowLossParts } from './loss.ts';
import type { LossReply, LossTask } from './loss-worker.ts';
import type { TrainingSettings } from './settings.ts';
import type { StepTotals } from './step-totals.ts';

/** Computes policy losses away from the caller's thread. */
export interface LossPool extends AsyncDisposable {
  /**
   * Computes one row's loss. The worker reads columns in shared memory in place, and copies of others.
   * @param totals totals of the step, if it has several rows
   */
  compute(
    inputs: PolicyLossInputs,
    settings: TrainingSettings,
    totals?: StepTotals | null,
  ): Promise<RowLossParts>;
  /** Ends the workers. */
  close(): Promise<void>;
}

/** Number of times that a row is tried before its worker's death fails the job. */
const ATTEMPTS = 3;

/** Options of a pool. */
export type LossPoolOptions = {
  /**
   * Highest number of worker threads. Default 1, for a trainer: the loss of a row takes little time beside its forward pass, and the next
   * row needs the gradient first.
   */
  readonly threads?: number;
  /** Path of the worker's program. */
  readonly workerFile?: string;
};

/** Opens a pool. The worker and its modules are loaded on first use, so that programs that do not train start faster. */
export function openLossPool({
  threads = 1,
  workerFile = packageFile('dist/rl/loss-worker.js'),
}: LossPoolOptions = {}): LossPool {
  let opened: Promise<Piscina<LossTask, LossReply>> | null = null;
  const open = async () => {
    const { Piscina } = await import('piscina');
    return new Piscina<LossTask, LossReply>({
      filename: workerFile,
      name: 'run',
      minThreads: 0,
      maxThreads: threads,
      idleTimeout: 30_000,
      execArgv: [], // flags of the host, such as loaders, are not for this worker
    });
  };
  async function compute(
    inputs: PolicyLossInputs,
    settings: TrainingSettings,
    totals: StepTotals | null = null,
  ): Promise<RowLossParts> {
    opened ??= open();
    const pool = await opened;
    for (let attempt = 1; ; attempt++) {
      const reply = await pool
        .run({ inputs, settings, totals })
        .catch((cause: unknown) => ({ kind: 'died' as const, cause }));
      if (reply.kind === 'done') return reply.loss;
      if (reply.kind === 'failed')
        throw new OnpolicyError(
          reply.code,
          reply.message,
          reply.param === undefined ? {} : { param: reply.param },
        );
      if (attempt >= ATTEMPTS)
        throw new OnpolicyError('BACKEND_FAILED', `the loss worker died ${ATTEMPTS} times`, {
          cause: reply.cause,
        });
    }
  }
  const close = async () => (await opened)?.destroy();
  return { compute, close, [Symbol.asyncDispose]: close };
}
