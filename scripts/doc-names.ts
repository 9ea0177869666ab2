// What the fragments in the docs take as given: names of the text around them, and imports that are left out.
/// <reference types="node" />
declare global {
  const createReadStream: typeof import('node:fs').createReadStream;
  const fs: typeof import('node:fs');
  const readFile: typeof import('node:fs/promises').readFile;
  const connect: typeof import('onpolicy').connect;
  const createPool: typeof import('onpolicy').createPool;
  const createRuntime: typeof import('onpolicy').createRuntime;
  const serve: typeof import('onpolicy').serve;
  const environmentRollout: typeof import('onpolicy/rl').environmentRollout;
  const gatherTrajectoryGroups: typeof import('onpolicy/rl').gatherTrajectoryGroups;
  const openai: import('openai').OpenAI;
  /** Of the package csv-parse. */
  const parse: (options: {
    columns: boolean;
  }) => NodeJS.ReadWriteStream & AsyncIterable<Record<'id' | 'text', string>>;

  const runtime: import('onpolicy').Runtime;
  const model: { readonly id: string };
  const messages: { role: 'user'; content: string }[];
  const file: Uint8Array;
  const output: string;
  const tokens: readonly number[];
  const data: Parameters<import('onpolicy').TrainingRun['forwardBackward']>[0];
  const questions: readonly string[];
  const handbook: string;
  const tasks: readonly { readonly question: string }[];
  const rollout: import('onpolicy/rl').Rollout<{ readonly question: string }>;
}

export {};
