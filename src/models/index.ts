/** A model reference -> a loaded model with its engine, templates and adapters. */
export { adaptersResource } from './adapters-resource.ts';
export { DECISIONS_FILE, readDecisions } from './checkpoint-decisions.ts';
export { chooseFitting } from './choose-fitting.ts';
export {
  DECISION_TEMPLATE,
  type DecisionHeader,
  decisionHeader,
  isLabelType,
  type LabelType,
} from './decision-header.ts';
export type { DraftModel } from './draft-model.ts';
export {
  type EmbeddingModel,
  type EmbeddingPlan,
  embeddingModel,
  planWholeTexts,
  type VectorPooling,
} from './embedding-model.ts';
export { type DecisionEntries, type ExportModel, type ModelExport, modelExporter } from './export-model.ts';
export { type Fit, fitOf } from './fit.ts';
export { ggufFormat } from './gguf-format.ts';
export { planLoad } from './load-model.ts';
export { totalBytes } from './memory-need.ts';
export { resolveFile } from './model-files.ts';
export {
  type FormatOptions,
  type FormatPlan,
  formatOf,
  type ModelFormat,
  type PlanRequest,
} from './model-format.ts';
export { type FindRegistered, leaseModel, type ModelLease } from './model-lease.ts';
export type { ModelMemory } from './model-memory.ts';
export { type Models, openModels } from './models.ts';
export { NamedAdapters } from './named-adapters.ts';
export { type NamedModels, namedModels } from './named-models.ts';
export { onCpu, type Placement } from './placement.ts';
export { openRemoteModel } from './remote-model.ts';
export { type RunningModel, requireGguf } from './running-model.ts';
export { limitsOf, type ServingOptions } from './serving-options.ts';
