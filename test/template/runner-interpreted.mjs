/** For the golden and attack runners: renders with the evaluator that walks the tree. Needs `npm run setup`. */
import { renderChatTemplate as render } from '../../dist/template/index.js';

export const renderChatTemplate = (input) => render({ ...input, engine: 'interpreted' });
