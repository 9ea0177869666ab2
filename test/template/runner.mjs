/** For the golden and attack runners beside the golden data. Needs `npm run setup`. */
export { renderChatTemplate } from '../../dist/template/index.js';
