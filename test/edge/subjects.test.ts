import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findSubjectFault } from '../subjects.ts'

test('a commit subject has a room and an imperative, with at most 60 characters', () => {
  for (const subject of [
    'sql: Claim due jobs behind delayed ones',
    'edge: Feed streams',
    'docs: Bring order',
  ])
    assert.equal(findSubjectFault(subject), null, subject)
  const faults: readonly (readonly [subject: string, reason: RegExp])[] = [
    ['sql: what is due is seen', /write "ROOM/],
    ['kitchen: Add a knife', /write "ROOM/],
    ['sql: Claim', /write "ROOM/],
    ['sql: What is due is seen', /"What" is no imperative/],
    ['edge: Renamed the hub', /"Renamed" is no imperative/],
    ['edge: Renaming the hub', /"Renaming" is no imperative/],
    [`edge: Add ${'x'.repeat(60)}`, /70 characters/],
  ]
  for (const [subject, reason] of faults) assert.match(findSubjectFault(subject) ?? 'valid', reason, subject)
})
