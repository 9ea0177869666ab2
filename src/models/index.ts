/** A model reference -> a loaded model with its engine, templates and adapters. */
export { type MessageFormat, type MessagePlan, planMessage } from './message-format.ts';
export { type FindRegistered, leaseModel, type ModelLease } from './model-lease.ts';
export { templateFor } from './model-template.ts';
export { type ModelOptions, Models, type RunningModel, requireGguf, type ServingLimits } from './models.ts';
