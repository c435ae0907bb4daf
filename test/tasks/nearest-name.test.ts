import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findNearestName } from '../../tasks/platform/nearest-name.ts'

test('the nearest name begins with the text or differs by a third at most', () => {
  const names = ['queue', 'priority', 'wait', 'when-busy']
  for (const [given, nearest] of [
    ['que', 'queue'],
    ['quue', 'queue'],
    ['prority', 'priority'],
    ['wiat', null],
    ['wit', 'wait'],
    ['x', null],
  ] as const)
    assert.equal(findNearestName(given, names), nearest, given)
})
