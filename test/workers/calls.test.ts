import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FinishedSpan, runWithOrigin } from '../../tasks/platform/telemetry/tracing.ts'
import { startCall } from '../../workers/providers/call.ts'

test('the span of a call begins at the correct time, although the clock changed after its thread began', (t) => {
  const spans: FinishedSpan[] = []
  const origin = { traceParent: 'x', logFields: () => null, record: (span: FinishedSpan) => spans.push(span) }
  const later = Date.now() + 3_600_000
  const clock = t.mock.method(Date, 'now', () => later)
  runWithOrigin(origin, () =>
    startCall({ provider: 'resend', operation: 'domains', url: 'https://api.resend.com/x' }),
  )()
  clock.mock.restore()
  const [{ startMs, endMs, ...rest }] = spans as [FinishedSpan]
  assert.equal(startMs, later)
  assert.ok(endMs >= startMs && endMs < startMs + 60_000, `${endMs - startMs} ms`)
  assert.deepEqual(rest, {
    name: 'resend domains',
    kind: 'client',
    parent: 'x',
    attributes: { 'peer.service': 'resend', 'server.address': 'api.resend.com' },
    error: null,
  })
})
