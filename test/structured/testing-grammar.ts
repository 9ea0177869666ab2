/** In place of `src/engine/native/grammar-addon.ts`: the addon of tests, whose limits can be changed. */
import { testing } from '../addon/testing-addon.ts';

export const grammarAddon = () => testing;
