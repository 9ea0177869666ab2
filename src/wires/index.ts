/** Requests of other APIs -> requests of the one engine, and its answers back in their form. */
export { CallerPaths } from './caller-paths.ts';
