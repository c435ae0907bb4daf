import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { formatTraceParent, parseTraceParent, traceIdOf } from '../../tasks/platform/telemetry/tracing.ts'
import { findProblems, settingNamesOf } from './settings-help.ts'

/** The header of traces and its format: https://www.w3.org/TR/trace-context/#traceparent-header */

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'

test('a traceparent names its trace, and whether that is sampled', () => {
  const kept = { traceId, spanId, isSampled: true }
  assert.deepEqual(parseTraceParent(`00-${traceId}-${spanId}-01`), kept)
  assert.deepEqual(parseTraceParent(`00-${traceId}-${spanId}-00`), { ...kept, isSampled: false })
  // Only the lowest bit means "sampled"; the other bits are reserved.
  assert.equal(parseTraceParent(`00-${traceId}-${spanId}-03`)?.isSampled, true)
  assert.equal(parseTraceParent(`00-${traceId}-${spanId}-fe`)?.isSampled, false)
})

test('a later version is parsed as far as it is known', () => {
  for (const text of [`01-${traceId}-${spanId}-01`, `cc-${traceId}-${spanId}-01-what-comes-later`])
    assert.deepEqual(parseTraceParent(text), { traceId, spanId, isSampled: true }, text)
})

test('other text is rejected', () => {
  const wrong = [
    '',
    'x',
    `${traceId}-${spanId}-01`,
    `ff-${traceId}-${spanId}-01`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${traceId.slice(1)}-${spanId}-01`,
    `00-${traceId}0-${spanId}-01`,
    `00-${traceId}-${spanId}-1`,
    `00-${traceId}-${spanId}-0x`,
    `00-${traceId}-${spanId}-01-more`,
    `00-${traceId}-${spanId}-01-`,
    `00-${traceId}-${spanId}-01 `,
    `01-${traceId}-${spanId}-01more`,
    `00-${traceId}-${spanId}-01,00-${traceId}-${spanId}-01`,
    `00_${traceId}_${spanId}_01`,
  ]
  for (const text of wrong) assert.equal(parseTraceParent(text), null, text)
})

test('a parsed traceparent is written in our version', () => {
  for (const isSampled of [true, false]) {
    const text = formatTraceParent({ traceId, spanId, isSampled })
    assert.equal(text, `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`)
    assert.deepEqual(parseTraceParent(text), { traceId, spanId, isSampled })
    assert.equal(traceIdOf(text), traceId)
  }
})

test('traces go to an endpoint, with its headers', () => {
  const tracing = (env: Record<string, string>) => parseSettings(env).tracing
  const headers = 'Authorization=Basic%20YTpi, x-team=mill,x-empty='
  assert.equal(tracing({ OTEL_EXPORTER_OTLP_HEADERS: headers, OTEL_SERVICE_NAME: 'x' }), null)
  assert.deepEqual(tracing({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318', PROJECT_NAME: 'mill' }), {
    url: 'http://127.0.0.1:4318/v1/traces',
    headers: {},
    serviceName: 'mill',
    sampleRatio: 1,
  })
  const all = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://otel.example.com/mill/',
    OTEL_EXPORTER_OTLP_HEADERS: headers,
    OTEL_SERVICE_NAME: 'mill-eu',
    OTEL_TRACES_SAMPLER_ARG: '0.05',
  }
  assert.deepEqual(tracing(all), {
    url: 'https://otel.example.com/mill/v1/traces',
    headers: { Authorization: 'Basic YTpi', 'x-team': 'mill', 'x-empty': '' },
    serviceName: 'mill-eu',
    sampleRatio: 0.05,
  })
})

test('invalid settings are named', () => {
  const wrong: Readonly<Record<string, readonly string[]>> = {
    LOG_LEVEL: ['verbose'],
    ACCESS_LOG: ['some', 'off'],
    METRICS_TOKEN: ['short', 'sixteen or more, but with spaces'],
    METRICS_PORT: ['8000', '0'],
    OTEL_EXPORTER_OTLP_ENDPOINT: ['collector:4318', 'grpc://x', 'x'],
    OTEL_EXPORTER_OTLP_HEADERS: ['x', '=x', 'a=b,c', 'a b=c', 'a=%E0%A4%A', 'a=b c'],
    OTEL_TRACES_SAMPLER_ARG: ['-1', '1.1', '2', 'half', '1e-3', '.5'],
    SLOW_QUERY_MS: ['-1', '3600001', '1s'],
  }
  for (const [name, values] of Object.entries(wrong))
    for (const value of values)
      assert.deepEqual(settingNamesOf(findProblems({ [name]: value })), [name], `${name}=${value}`)
})
