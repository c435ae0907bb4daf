import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import { loadSecretKey } from '../../tasks/platform/process.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'

/** In development, the service generates a secret key and stores it. */

let dataDir = ''
const createdFolders: string[] = []
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'millrace-key-'))
  createdFolders.push(dataDir)
})
after(() => {
  for (const folder of createdFolders) rmSync(folder, { recursive: true, force: true })
})

const readKey = (): string => loadSecretKey(parseSettings({ NODE_ENV: 'test', DATA_DIR: dataDir }))

test('the key is created once and reused', () => {
  const first = readKey()
  assert.match(first, /^[\w-]{64}$/)
  assert.equal(readKey(), first)
  assert.deepEqual(readdirSync(dataDir), ['secret.key'])
})

test('a partial file after a crash or a full disk is not a key', () => {
  for (const left of ['', '\n', 'abc']) {
    writeFileSync(join(dataDir, 'secret.key'), left)
    assert.throws(readKey, /secret\.key holds no key: delete it to generate a new one/)
  }
})
