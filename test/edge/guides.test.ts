import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { areas } from '../../edge/routes/index.ts'
import { assertListed } from '../listed.ts'

const GUIDES = new URL('../../edge/guides/', import.meta.url)
const files = globSync('*.md', { cwd: GUIDES })
// Guides that describe no area.
const GENERAL = ['README.md', 'command-line.md']
const names = new Set(areas.map(({ name }) => name))

test('each area has a guide, and each guide an area', () => {
  assertListed(
    [...names],
    files.filter((file) => !GENERAL.includes(file)).map((file) => file.replace('.md', '')),
    ['edge/guides/NAME.md: a title, a sentence about the area, examples'],
  )
})

test('a guide starts with a title and a sentence and links only to pages of the reference', () => {
  for (const file of files) {
    const text = readFileSync(new URL(file, GUIDES), 'utf8')
    assert.match(text, /^# .+\n\n[A-Z][^\n]+/, file)
    for (const [, target] of text.matchAll(/\]\(([^)]+)\)/g)) assert.match(target!, /^(https:|#)/, file)
  }
})
