/** A tool of the page: the time where the user is. */
import type { PageTool } from './chat.ts';

export const CLOCK = {
  name: 'current_time',
  definition: {
    type: 'function',
    function: {
      name: 'current_time',
      description: 'Returns the current date and time of the user, with the time zone.',
      parameters: { type: 'object', properties: {}, additionalProperties: false },
    },
  },
  run: () => {
    const now = new Date();
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    return JSON.stringify({
      local: now.toLocaleString('en', { dateStyle: 'full', timeStyle: 'long' }),
      timeZone,
      utc: now.toISOString(),
    });
  },
} as const satisfies PageTool & { readonly definition: object };
