import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seal, unseal } from '../../tasks/platform/sealed.ts'

const KEY = 'a deployment key of 32 characters'

test('a sealed secret opens only in its place and with its key', () => {
  for (const secret of ['', 'correct horse', 'Grün & weiß 鍵', 'x'.repeat(5000)]) {
    const sealed = seal(KEY, 'document:5', secret)
    assert.match(sealed, /^[\w-]+$/)
    if (secret !== '') assert.ok(!Buffer.from(sealed, 'base64url').includes(secret))
    assert.equal(unseal(KEY, 'document:5', sealed), secret)
    assert.equal(unseal(KEY, 'document:6', sealed), null)
    assert.equal(unseal(`${KEY}!`, 'document:5', sealed), null)
    assert.notEqual(seal(KEY, 'document:5', secret), sealed, 'the same secret looks different each time')
  }
})

test('a changed or truncated secret does not open', () => {
  const bytes = Buffer.from(seal(KEY, 'here', 'secret'), 'base64url')
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes)
    changed[at]! ^= 1
    assert.equal(unseal(KEY, 'here', changed.toString('base64url')), null)
    assert.equal(unseal(KEY, 'here', bytes.subarray(0, at).toString('base64url')), null)
  }
})
