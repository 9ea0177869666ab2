/** A model reference -> a loaded model with its engine, templates and adapters. */
export { type MessageFormat, type MessagePlan, planMessage } from './message-format.ts';
export { type ModelOptions, Models, requireGguf, type ServedModel, type ServingLimits } from './models.ts';
export { templateFor } from './served-template.ts';
export { type FindRegistered, type Serving, serve } from './serving.ts';
