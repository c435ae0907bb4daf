import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTally, formatHistogram } from '../load-tally.ts'

/** Statistics of the load test. */

test('a tally adds up, whichever of answer and stream arrives first', () => {
  let at = 0
  const tally = createTally(() => at)
  tally.recordAnswer(['a', 'b'], 0, 5)
  tally.recordState('a', 'running', 6)
  tally.recordState('a', 'done', 10)
  tally.recordState('a', 'done', 11)
  tally.recordState('c', 'failed', 12)
  tally.recordAnswer(['c'], 7, 13)
  tally.recordState('somebody else’s', 'done', 14)
  tally.recordRejection('503: no')
  at = 1000
  assert.equal(tally.waiting, 1)
  assert.deepEqual(tally.listWaitingIds(), ['b'])
  assert.equal(tally.refused, 1)
  assert.match(
    tally.formatProgressLine(),
    /1 s {2}added {6}3\/s {2}ended {6}2\/s {2}waiting {6}1 .* failed 1$/,
  )
  at = 2000
  assert.match(tally.formatProgressLine(), /added {6}0\/s {2}ended {6}0\/s/)
  tally.endAdding()
  tally.recordState('b', 'cancelled', 100)
  const report = tally.report()
  assert.match(report, /Added 3 tasks in 2\.0 s \(2\/s\), ended 3 in 0\.1 s \(30\/s\)/)
  assert.match(report, /done 1, failed 1, cancelled 1, not ended 0/)
  assert.match(report, /refused 1 times: 503: no/)
  assert.match(report, /request to end +p50 +10\.0 ms {2}p95 +100\.0 ms/)
})

test('an empty tally reports nothing', () => {
  assert.match(createTally(() => 0).report(), /Added 0 tasks/)
})

test('a histogram has every power of two between the first and the last', () => {
  const lines = formatHistogram([0.5, 3, 3.5, 4, 30]).trimEnd().split('\n').slice(1)
  assert.deepEqual(
    lines.map((line) => [line.trim().split(' ')[0], line.trim().split(' ').at(-1)]),
    [
      ['1', '1'],
      ['2', '0'],
      ['4', '3'],
      ['8', '0'],
      ['16', '0'],
      ['32', '1'],
    ],
  )
})
