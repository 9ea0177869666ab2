/** Any text, made of a family's own markers and scraps of calls: no failure, no difference by cut, no broken call. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isMark } from '../../../src/template/text-reader.ts';
import { TOOL_FORMATS, type ToolCallEvent, toolCallMarkers } from '../../../src/template/tool-calls/index.ts';
import { FAMILY_ROWS } from './families.ts';
import { foldToolCallEvents } from './fold.ts';
import { cut, eventsOf } from './harness.ts';

const SCRAPS = [
  ...[
    '{',
    '}',
    '[',
    ']',
    '(',
    ')',
    ',',
    ':',
    '"',
    "'",
    '\\',
    '\n',
    ' ',
    '=',
    '```',
    'call:',
    'get_weather',
    'get_time',
  ],
  ...[
    'city',
    '1',
    'None',
    'x',
    '{"name": "get_time", "arguments": {}}',
    '{"zone": "UTC"}',
    'zone="UTC"',
    '🌦️',
    'functions.',
  ],
];

/** Starts, arguments and ends come in order, one call at a time. */
function expectOrder(events: readonly ToolCallEvent[]): void {
  let open: number | null = null;
  let count = 0;
  for (const event of events) {
    if (event.kind === 'call_start') {
      expect(open).toBeNull();
      expect(event.index).toBe(count++);
      expect(event.name).not.toBe('');
      open = event.index;
    } else if (event.kind !== 'content') {
      expect(event.index).toBe(open);
      if (event.kind !== 'call_arguments') open = null;
    } else expect(open).toBeNull();
  }
  expect(open).toBeNull();
}

it.each(TOOL_FORMATS)('%s', { timeout: 30_000 }, (format) => {
  const rows = FAMILY_ROWS.filter((row) => row.format === format);
  const marks = toolCallMarkers(format).filter(isMark);
  const calls = rows.flatMap((row) => [row.one, row.one.slice(0, row.one.length / 2), row.one.slice(0, -9)]);
  const scrap = fc.constantFrom(...SCRAPS, ...toolCallMarkers(format), ...toolCallMarkers(format), ...calls);
  const text = fc.array(scrap, { maxLength: 14 }).map((scraps) => scraps.join(''));
  fc.assert(
    fc.property(text, fc.array(fc.nat(2000), { maxLength: 10 }), (whole, places) => {
      const events = eventsOf(format, [whole]);
      const message = foldToolCallEvents(events);
      expectOrder(events);
      expect(foldToolCallEvents(eventsOf(format, cut(whole, places)))).toEqual(message);
      expect(foldToolCallEvents(eventsOf(format, whole.split('')))).toEqual(message);
      const broken = new Set(events.flatMap((event) => (event.kind === 'call_broken' ? [event.index] : [])));
      const complete = message.toolCalls.filter((_, index) => !broken.has(index));
      for (const call of complete) {
        const value: unknown = JSON.parse(call.arguments);
        expect(typeof value === 'object' && value !== null && !Array.isArray(value)).toBe(true);
      }
      // functionary's `>>>all` is framing and goes; nothing else is lost but a mark in which the text ends, and what is behind it
      if (message.toolCalls.length > 0 || format === 'functionary_v32') return;
      const { content } = message;
      const rest = whole.slice(content.length);
      expect(whole.startsWith(content)).toBe(true);
      if (rest !== '')
        expect(marks.some((mark) => mark.startsWith(rest) || rest.startsWith(mark))).toBe(true);
    }),
    { numRuns: 150 },
  );
});
