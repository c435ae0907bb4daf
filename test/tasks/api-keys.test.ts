import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createApiKey, hasKeyPrefix, isApiKey } from '../../tasks/accounts/api-keys.ts'

/** Format of API keys. */

const KEY = createApiKey()

test('a key has its prefix, 256 random bits and a checksum', () => {
  assert.match(KEY, /^mill_live_[0-9A-Za-z]{49}$/)
  assert.notEqual(createApiKey(), KEY)
  assert.ok(isApiKey(KEY))
})

test('the checksum detects a changed character and swapped neighbours', () => {
  for (let at = 'mill_live_'.length; at < KEY.length; at++) {
    const other = KEY[at] === 'x' ? 'y' : 'x'
    assert.equal(isApiKey(KEY.slice(0, at) + other + KEY.slice(at + 1)), false, `character ${at}`)
    if (KEY[at] === KEY[at - 1] || at === 'mill_live_'.length) continue
    const swapped = KEY.slice(0, at - 1) + KEY[at] + KEY[at - 1] + KEY.slice(at + 1)
    assert.equal(isApiKey(swapped), false, `characters ${at - 1} and ${at}`)
  }
})

test('other text is no key', () => {
  for (const text of [
    '',
    'mill_live_',
    KEY.slice(0, -1),
    `${KEY}0`,
    KEY.slice(1),
    KEY.toUpperCase(),
    ` ${KEY}`,
  ])
    assert.equal(isApiKey(text), false, text)
  assert.deepEqual([KEY, 'mill_live_x', 'eyJhbGciOiJIUzI1NiJ9.e30.x'].map(hasKeyPrefix), [true, true, false])
})
