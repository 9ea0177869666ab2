/** Every family: text, one call, two calls, a call after text, any split, every truncation, a malformed call. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TOOL_FORMATS } from '../../../src/template/tool-calls/index.ts';
import { TIME, WEATHER } from './call-texts.ts';
import { FAMILY_ROWS } from './families.ts';
import { foldToolCallEvents } from './fold.ts';
import { callsOf, cut, eventsOf, messageOf } from './harness.ts';

const TEXT = 'Plain <text>, with {braces}, [lists] and a <tool_ tag.\n\n- and `code`: a < b && c > d';

it('has a row for every format', () => {
  const covered = new Set(FAMILY_ROWS.map((row) => row.format));
  expect(TOOL_FORMATS.filter((format) => !covered.has(format))).toEqual(['none']);
});

it('gives all text back as content without a format', () => {
  expect(messageOf('none', FAMILY_ROWS[0]!.one).content).toBe(FAMILY_ROWS[0]!.one);
});

describe.each(FAMILY_ROWS.map((row) => [row.format, row] as const))('%s', (format, row) => {
  const before = row.textBefore ?? 'Let me look. ';
  const visibleBefore = before.replace(/^all\n/, '').replace(/>>>$/, '');

  it('passes plain text through', () => {
    const message = messageOf(format, TEXT);
    expect(message.content).toBe(TEXT);
    expect(message.toolCalls).toEqual([]);
  });

  it('reads one call', () => {
    const message = messageOf(format, row.one);
    expect(callsOf(message)).toEqual([['get_weather', WEATHER]]);
    expect(message.content).toBe('');
    expect(message.hasBrokenCall).toBe(false);
  });

  it('reads two calls', () => {
    const message = messageOf(format, row.two);
    expect(callsOf(message)).toEqual([
      ['get_weather', WEATHER],
      ['get_time', TIME],
    ]);
    expect(message.toolCalls.map((call) => call.id)).toEqual(['id0', 'id1']);
    expect(message.content).toBe('');
  });

  it('reads a call behind text, and behind white space alone', () => {
    const message = messageOf(format, before + row.one);
    expect(callsOf(message)).toEqual([['get_weather', WEATHER]]);
    expect(message.content).toBe(visibleBefore);
    expect(messageOf(format, `\n\n${row.one}\n`).content).toBe('');
  });

  it('gives the same message however the text is cut', { timeout: 30_000 }, () => {
    for (const text of [row.one, before + row.two, before + row.malformed, before + row.one.slice(0, -3)]) {
      const whole = messageOf(format, text);
      expect(foldToolCallEvents(eventsOf(format, [...text]))).toEqual(whole);
      expect(foldToolCallEvents(eventsOf(format, text.split('')))).toEqual(whole);
      fc.assert(
        fc.property(fc.array(fc.nat(text.length), { maxLength: 12 }), (places) => {
          expect(foldToolCallEvents(eventsOf(format, cut(text, places)))).toEqual(whole);
        }),
        { numRuns: 60 },
      );
    }
  });

  it('drops a call that is cut off before its name, from its mark on', () => {
    const text = before + row.one;
    for (let length = 0; length < text.length; length++) {
      const message = messageOf(format, text.slice(0, length));
      // complete arguments make a call; without a name, the text is as the model wrote it, up to the mark of a call
      if (message.hasBrokenCall) expect(message.toolCalls.map(({ name }) => name)).toEqual(['get_weather']);
      else if (message.toolCalls.length > 0) expect(callsOf(message)).toEqual([['get_weather', WEATHER]]);
      else if (!before.startsWith('all'))
        expect([text.slice(0, length), text.slice(0, Math.min(length, before.length))]).toContain(
          message.content,
        );
    }
    const nameEnd = row.one.indexOf(row.nameEnd) + row.nameEnd.length;
    const events = eventsOf(format, [row.one.slice(0, nameEnd - 1)]);
    expect(events.filter((event) => event.kind !== 'content')).toEqual([]);
  });

  it('keeps what came of an announced call that is cut off', () => {
    const half = row.one.slice(0, row.one.indexOf('back'));
    const events = eventsOf(format, [half]);
    expect(events.at(-1)).toEqual({ kind: 'call_broken', index: 0, text: '' });
    const { content, toolCalls, hasBrokenCall } = foldToolCallEvents(events);
    expect({ content, hasBrokenCall }).toEqual({ content: '', hasBrokenCall: true });
    const whole = messageOf(format, row.one).toolCalls[0]!;
    expect(toolCalls.map(({ name }) => name)).toEqual(['get_weather']);
    expect(whole.arguments.startsWith(toolCalls[0]!.arguments)).toBe(true);
  });

  it('leaves a malformed call as far as it was announced, and reads on behind it', () => {
    const message = messageOf(format, row.malformed);
    expect(message.content).toBe(row.malformed);
    expect(message.toolCalls).toHaveLength(message.hasBrokenCall ? 1 : 0);
    if (format === 'functionary_v32') return; // its calls behind text need their own marker
    const both = messageOf(format, `${row.malformed}\n${row.one}`);
    expect(callsOf({ ...both, toolCalls: both.toolCalls.slice(-1) })).toEqual([['get_weather', WEATHER]]);
  });

  it('streams the name before the arguments, and the city before the call ends', () => {
    const events = eventsOf(format, [...row.one]);
    const start = events.findIndex((event) => event.kind === 'call_start');
    const end = events.findIndex((event) => event.kind === 'call_end');
    const deltas = events.slice(start, end).filter((event) => event.kind === 'call_arguments');
    expect(start).toBe(0);
    expect(deltas.length).toBeGreaterThan(20);
  });
});
