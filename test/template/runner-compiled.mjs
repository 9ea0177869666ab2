/** For the golden and attack runners: renders with generated code. Needs `npm run setup`. */
import { renderChatTemplate as render } from '../../dist/template/index.js';

export const renderChatTemplate = (input) => render({ ...input, engine: 'compiled' });
