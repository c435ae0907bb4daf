import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parseSettings, SETTING_NAMES } from '../../tasks/platform/settings/settings.ts'

const text = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8')
const lines = [...text.matchAll(/^#?([A-Z][A-Z0-9_]+)=(.*)$/gm)].map(
  ([, name, value]) => [name!, value!] as const,
)

test('.env.example has every setting once, and no others', () => {
  assert.deepEqual(lines.map(([name]) => name).sort(), [...SETTING_NAMES].sort())
})

test('.env.example shows the real defaults', () => {
  assert.deepEqual(parseSettings(Object.fromEntries(lines)), parseSettings({}))
})
