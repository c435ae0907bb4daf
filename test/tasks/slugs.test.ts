import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { transliterate } from 'transliteration'
import { slugify } from '../../tasks/blog/slugs.ts'
import { createRunOptions } from '../runs.ts'

/** Computes a slug from the tables alone, without the shortcut for ASCII. */
function computeSlug(text: string): string {
  const spelled = text
    .normalize('NFKC')
    .replace(/(?<=[\p{L}\p{N}+])\+/gu, ' plus ')
    .replace(/(?<=[\p{L}\p{N}])#/gu, ' sharp ')
    .replace(/&/g, ' and ')
  return transliterate(spelled)
    .toLowerCase()
    .replace(/['`’]/g, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
}

test('the tables do not change ASCII text, which skips them', () => {
  const ascii = fc.string({ unit: 'binary-ascii', maxLength: 100 })
  fc.assert(
    fc.property(ascii, (text) => assert.equal(transliterate(text), text)),
    createRunOptions(),
  )
})

test('a slug is its text converted by the tables', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary-ascii', maxLength: 100 }),
    fc.string({ unit: 'grapheme', maxLength: 100 }),
  )
  fc.assert(
    fc.property(text, (given) => assert.equal(slugify(given), computeSlug(given))),
    createRunOptions(),
  )
})
