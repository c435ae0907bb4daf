import assert from 'node:assert/strict'
import { test } from 'node:test'
import { joinParts } from '../../tasks/voice/parts.ts'

/** The answers for the pieces of a recording are joined. */

const joinLanguages = (parts: readonly (readonly [text: string, language: string | null])[]) =>
  joinParts(
    parts.map(([text, language], n) => ({
      start: n,
      end: n + 1,
      part: {
        ...{ text, language, duration_seconds: 1, segments: [], cost: '0' },
        usage: { input_tokens: 0, output_tokens: 0, audio_seconds: 1 },
      },
    })),
  ).language

test('the language is that of the first part with text, or else of the first part with a language', () => {
  assert.equal(
    joinLanguages([
      ['', 'nn'],
      [' ', 'cy'],
      ['Guten Tag', 'de'],
      ['Hello', 'en'],
    ]),
    'de',
  )
  assert.equal(
    joinLanguages([
      ['', 'nn'],
      ['Hello', null],
    ]),
    'nn',
  )
  assert.equal(
    joinLanguages([
      ['', null],
      ['', 'cy'],
    ]),
    'cy',
  )
  assert.equal(
    joinLanguages([
      ['Hello', null],
      ['Hello', null],
    ]),
    null,
  )
})
