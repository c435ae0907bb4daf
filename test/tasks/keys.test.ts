import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SecretKeys } from '../../tasks/platform/keys.ts'

const [FIRST, SECOND] = ['a deployment key of 32 characters', 'another one with 32 characters...']
const createKeys = (...secrets: string[]) => new SecretKeys({ secrets, stored: ['stored'] })
const [before, during, after] = [createKeys(FIRST), createKeys(SECOND, FIRST), createKeys(SECOND)]

describe('a sealed secret', () => {
  test('opens only for its use and with its key', () => {
    for (const secret of ['', 'correct horse', 'Grün & weiß 鍵', 'x'.repeat(5000)]) {
      const sealed = before.seal('document:5', secret)
      assert.match(sealed, /^[\w-]{8}\.[\w-]+$/)
      if (secret !== '') assert.ok(!Buffer.from(sealed.slice(9), 'base64url').includes(secret))
      assert.equal(before.unseal('document:5', sealed), secret)
      assert.equal(before.unseal('document:6', sealed), null)
      assert.equal(createKeys(`${FIRST}!`).unseal('document:5', sealed), null)
      assert.notEqual(before.seal('document:5', secret), sealed, 'the same secret looks different each time')
    }
  })

  test('does not open if it is changed or truncated', () => {
    const sealed = before.seal('here', 'secret')
    const [id, text] = sealed.split('.') as [string, string]
    const bytes = Buffer.from(text, 'base64url')
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes)
      changed[at]! ^= 1
      assert.equal(before.unseal('here', `${id}.${changed.toString('base64url')}`), null)
      assert.equal(before.unseal('here', `${id}.${bytes.subarray(0, at).toString('base64url')}`), null)
    }
    for (const other of ['', id, `${id}.`, text, `${after.currentId}.${text}`])
      assert.equal(during.unseal('here', other), null, other)
  })

  test('is AES-256-GCM with a random nonce, under a key that HKDF derives with SHA-256', async () => {
    const bytes = Buffer.from(before.seal('here', 'secret').slice(9), 'base64url')
    const { subtle } = globalThis.crypto
    const base = await subtle.importKey('raw', Buffer.from(FIRST), 'HKDF', false, ['deriveKey'])
    const [salt, info] = [Buffer.alloc(0), Buffer.from('millrace.sealed')]
    const hkdf = { name: 'HKDF', hash: 'SHA-256', salt, info }
    const key = await subtle.deriveKey(hkdf, base, { name: 'AES-GCM', length: 256 }, false, ['decrypt'])
    const gcm = {
      name: 'AES-GCM',
      iv: bytes.subarray(0, 12),
      additionalData: Buffer.from('here'),
      tagLength: 128,
    }
    const opened = await subtle.decrypt(gcm, key, bytes.subarray(12))
    assert.equal(Buffer.from(opened).toString(), 'secret')
  })

  test('opens with a previous key, and is sealed under the current one', () => {
    const [old, current] = [before.seal('here', 'old'), during.seal('here', 'new')]
    assert.deepEqual([during.unseal('here', old), during.unseal('here', current)], ['old', 'new'])
    assert.deepEqual([before.unseal('here', current), after.unseal('here', old)], [null, null])
    assert.equal(after.unseal('here', current), 'new')
  })

  test('names its key by an id that does not depend on the use', () => {
    assert.ok(before.seal('here', 'x').startsWith(`${before.currentId}.`))
    assert.deepEqual([during.currentId, during.previousIds], [after.currentId, [before.currentId]])
    assert.notEqual(before.currentId, after.currentId)
    assert.ok(!FIRST.includes(before.currentId))
  })
})

describe('a MAC', () => {
  test('is made under the current key and verified under each', () => {
    const [old, current] = [before.tokens.token('use', 'a', 'b'), during.tokens.token('use', 'a', 'b')]
    assert.match(old, /^[\w-]{43}$/)
    assert.deepEqual(during.tokens.tokens('use', 'a', 'b'), [current, old])
    const verdicts = [before, during, after].map(({ tokens }) =>
      [old, current].map((token) => tokens.verify(token, 'use', 'a', 'b')),
    )
    assert.deepEqual(verdicts, [
      [true, false],
      [true, true],
      [false, true],
    ])
  })

  test('is valid only for its purpose and parts, as written', () => {
    const token = during.tokens.token('use', 'a', 'b')
    for (const [purpose, ...parts] of [
      ['other', 'a', 'b'],
      ['use', 'ab'],
      ['use', 'a'],
      ['use', 'b', 'a'],
    ])
      assert.equal(during.tokens.verify(token, purpose!, ...parts), false)
    for (const text of ['', `${token}=`, token.slice(0, -1), `${token}x`])
      assert.equal(during.tokens.verify(text, 'use', 'a', 'b'), false, text)
  })

  test('under a stored key survives a change of SECRET_KEY', () => {
    const token = before.stored.token('use', 'a')
    assert.ok(after.stored.verify(token, 'use', 'a'))
    assert.ok(!new SecretKeys({ secrets: [FIRST], stored: ['other'] }).stored.verify(token, 'use', 'a'))
    assert.notEqual(token, before.tokens.token('use', 'a'))
  })
})
