import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { LOCK, tidyLock } from '../lock.ts'

test('the lock file makes npm print no warning about engines and download nothing else', () => {
  const text = readFileSync(LOCK, 'utf8')
  assert.equal(text, tidyLock(text), 'run `npm run fix`')
})

test('tidying removes engines and the install script of onnxruntime-node, and nothing else', () => {
  const packages = {
    '': { name: 'a' },
    'node_modules/b': { version: '1.0.0', hasInstallScript: true, engines: { node: '>=22' } },
    'node_modules/c/node_modules/onnxruntime-node': { version: '2.0.0', hasInstallScript: true },
  }
  assert.deepEqual(JSON.parse(tidyLock(JSON.stringify({ lockfileVersion: 3, packages }))), {
    lockfileVersion: 3,
    packages: {
      '': { name: 'a' },
      'node_modules/b': { version: '1.0.0', hasInstallScript: true },
      'node_modules/c/node_modules/onnxruntime-node': { version: '2.0.0' },
    },
  })
})
