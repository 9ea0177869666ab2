// Code fragments in the docs -> declarations of the names that they assume: from the text around them, and from omitted imports.
/// <reference types="node" />
declare global {
  const createReadStream: typeof import('node:fs').createReadStream;
  const fs: typeof import('node:fs');
  const readFile: typeof import('node:fs/promises').readFile;
  const connect: typeof import('onpolicy').connect;
  const createPool: typeof import('onpolicy').createPool;
  const createRuntime: typeof import('onpolicy').createRuntime;
  const serve: typeof import('onpolicy').serve;
  const AgentBaselines: typeof import('onpolicy/rl').AgentBaselines;
  const algorithms: typeof import('onpolicy/rl').algorithms;
  const attempts: readonly import('onpolicy/rl').AgentTrajectory[];
  const episodes: readonly (readonly import('onpolicy/rl').AgentTrajectory[])[];
  const environmentRollout: typeof import('onpolicy/rl').environmentRollout;
  const hierarchicalGroups: typeof import('onpolicy/rl').hierarchicalGroups;
  const learnDecisions: typeof import('onpolicy/rl').learnDecisions;
  const examples: readonly import('onpolicy/rl').DecisionExample[];
  const gatherTrajectoryGroups: typeof import('onpolicy/rl').gatherTrajectoryGroups;
  const openai: import('openai').OpenAI;
  const z: typeof import('zod').z;
  const schema: typeof import('onpolicy').schema;
  const Person: import('zod').ZodObject<{ name: import('zod').ZodString; city: import('zod').ZodString }>;
  const rows: readonly { readonly id: string; readonly text: string }[];
  const toRequest: (row: { readonly id: string; readonly text: string }) => import('onpolicy').BatchLine;
  /** The parser of the package csv-parse. */
  const parse: (options: {
    columns: boolean;
  }) => NodeJS.ReadWriteStream & AsyncIterable<Record<'id' | 'text', string>>;

  const runtime: import('onpolicy').Runtime;
  const model: { readonly id: string };
  const isImpatient: () => boolean;
  const weatherOf: (city: string, signal: AbortSignal) => Promise<string>;
  const confirmCall: (name: string, given: object) => Promise<boolean | string>;
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
