/** All definitions of the protocol, and lists of those that are requests and of those whose defaults are filled in. */
import { adapterDefinitions } from './adapter.ts';
import { batchDefinitions, batchRequestDefinitions } from './batch.ts';
import { chatCompletionDefinitions, FIELD_GROUPS } from './chat-completion.ts';
import { decisionDefinitions } from './decision.ts';
import { embeddingDefinitions } from './embedding.ts';
import { httpDefinitions } from './http.ts';
import { logitsProcessorDefinitions } from './logits-processor.ts';
import { messageDefinitions } from './message.ts';
import { messagesDefinitions } from './messages.ts';
import { modelDefinitions } from './model.ts';
import { modelOptionDefinitions } from './model-options.ts';
import { ollamaDefinitions } from './ollama.ts';
import { otherServerDefinitions } from './other-servers.ts';
import { rankDefinitions } from './rank.ts';
import { responseHistoryDefinitions } from './response-history.ts';
import { responseToolDefinitions } from './response-tools.ts';
import { responsesDefinitions } from './responses.ts';
import { rlDefinitions } from './rl.ts';
import { rolloutDefinitions } from './rollout.ts';
import { runtimeDefinitions } from './runtime.ts';
import type { Definitions } from './schema.ts';
import { speculationDefinitions } from './speculation.ts';
import { storeDefinitions } from './store.ts';
import { specificationDefinitions, structuredDefinitions } from './structured-outputs.ts';
import { textCompletionDefinitions } from './text-completion.ts';
import { tinkerDefinitions } from './tinker.ts';
import { tokenizerDefinitions } from './tokenizer.ts';
import { toolDefinitions } from './tool.ts';
import { toolLoopDefinitions } from './tool-loop.ts';
import { trainingJobDefinitions } from './training-job.ts';
import { trainingRunDefinitions } from './training-run.ts';
import { trajectoryDefinitions } from './trajectory.ts';
import { transcriptionDefinitions } from './transcription.ts';

/** Fields of a chat completion request by subject. */
export const fieldGroups = FIELD_GROUPS;

export const definitions: Definitions = {
  ...chatCompletionDefinitions,
  ...logitsProcessorDefinitions,
  ...messageDefinitions,
  ...toolDefinitions,
  ...structuredDefinitions,
  ...speculationDefinitions,
  ...adapterDefinitions,
  ...trainingJobDefinitions,
  ...trainingRunDefinitions,
  ...trajectoryDefinitions,
  ...modelDefinitions,
  ...tokenizerDefinitions,
  ...textCompletionDefinitions,
  ...otherServerDefinitions,
  ...messagesDefinitions,
  ...ollamaDefinitions,
  ...tinkerDefinitions,
  ...responsesDefinitions,
  ...responseHistoryDefinitions,
  ...responseToolDefinitions,
  ...embeddingDefinitions,
  ...transcriptionDefinitions,
  ...rankDefinitions,
  ...decisionDefinitions,
  ...batchRequestDefinitions,
};

export const argumentDefinitions: Definitions = {
  ...rlDefinitions,
  ...rolloutDefinitions,
  ...toolLoopDefinitions,
  ...modelOptionDefinitions,
  ...runtimeDefinitions,
  ...httpDefinitions,
  ...storeDefinitions,
  ...specificationDefinitions,
  ...batchDefinitions,
};

/** Definitions that inputs are checked against, in addition to those of arguments: whole requests and training settings. */
export const validated = Object.keys(definitions).filter((name) =>
  /(Request|Body|Query)$|^(Sft|Experimental)Config$/.test(name),
);

/** Definitions whose defaults are filled in, in addition to those of arguments. */
export const filled = [
  'ChatCompletionRequest',
  'StructuredOutputs',
  'SpeculationSettings',
  'RepetitionDetection',
  'Adapter',
  'ModelCreateRequest',
  'ModelExportRequest',
  'ListQuery',
  'JobListQuery',
  'EmbeddingRequest',
  'RerankRequest',
  'ScoreRequest',
  'ClassifyRequest',
  'DecisionRequest',
  'ExperimentalConfig',
  'SftConfig',
  'TrainingRunRequest',
  'RunDataRequest',
  'RunStepRequest',
  'AdamParams',
  'RunSaveRequest',
  'RunLoadRequest',
  'RunPublishRequest',
  'RunSampleRequest',
] as const;
