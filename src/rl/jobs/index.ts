/** Training requests for registered models -> jobs: queued, run, cancelled, their adapters served. */
export { findRegistered, isRegistered } from './registered.ts';
export { Training } from './training.ts';
