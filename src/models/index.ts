/** A model reference -> a loaded model with its engine, templates and adapters. */
export { type AdaptersResource, adaptersResource } from './adapters-resource.ts';
export type { DraftModel } from './draft-model.ts';
export type { EmbeddingModel } from './embedding-model.ts';
export { type ExportModel, type ModelExport, modelExporter } from './export-model.ts';
export { planLoad } from './load-model.ts';
export { totalBytes } from './memory-need.ts';
export { type MessageFormat, type MessagePlan, PLAIN_TEXT, planMessage } from './message-format.ts';
export { type FindRegistered, leaseModel, type ModelLease } from './model-lease.ts';
export { templateFor } from './model-template.ts';
export { Models, type ResidentModel } from './models.ts';
export { type NamedAdapter, NamedAdapters } from './named-adapters.ts';
export { type NamedModels, namedModels } from './named-models.ts';
export type { Placement } from './placement.ts';
export type { ResidentState } from './residency.ts';
export { type RunningModel, requireGguf } from './running-model.ts';
