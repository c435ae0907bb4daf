import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { listReleasedVersions, surfaceFileOf } from '../releases.ts'
import { findBreaks, readSurface, type Surface } from '../surface.ts'
import { getSharedEdge } from './harness.ts'

/** Releases promise the API, settings, metrics and processes: nothing that was there goes or changes its type. */

const { api } = await getSharedEdge()
const current = await readSurface(async (path) => (await api.get(path)).text)

for (const version of listReleasedVersions())
  test(`keeps what ${version} promised`, () => {
    const released = JSON.parse(gunzipSync(readFileSync(surfaceFileOf(version))).toString()) as Surface
    assert.deepEqual(findBreaks(released, current), [])
  })

test('the surface has all parts', () => {
  assert.deepEqual(findBreaks(current, current), [])
  assert.ok(current.settings.includes('SECRET_KEY') && current.settings.length > 100)
  assert.ok(current.metrics.length > 25)
  for (const metric of [
    'http_request_duration_seconds histogram le method route',
    'http_refusals_total counter code',
    'job_run_seconds histogram le queue task',
    'worker_threads_killed_total counter',
    'worker_http_leases gauge queue',
    'lagging_reads_total counter server',
  ])
    assert.ok(current.metrics.includes(metric), `${metric} is not among\n${current.metrics.join('\n')}`)
  assert.deepEqual(current.processes, ['web', 'worker', 'release'])
})

// biome-ignore lint/suspicious/noExplicitAny: tests change any part of the reference
type Reference = any

/** Returns the breaks after a change of the reference. */
function breaksOf(change: (reference: Reference) => void): string[] {
  const reference = structuredClone(current.reference) as Reference
  change(reference)
  return findBreaks(current, { ...current, reference })
}

const BREAKS: Readonly<Record<string, [(reference: Reference) => void, RegExp]>> = {
  'a route goes': [({ paths }) => delete paths['/api/v1/documents/{id}'].patch, /^PATCH .*: is gone$/],
  'a webhook goes': [({ webhooks }) => delete webhooks['job.done'], /^POST job\.done: is gone$/],
  'a parameter goes': [
    ({ paths }) => paths['/api/v1/documents'].get.parameters.pop(),
    /^GET \/api\/v1\/documents query \w+: is gone$/,
  ],
  'a parameter becomes required': [
    ({ paths }) => {
      paths['/api/v1/documents'].get.parameters.at(-1).required = true
    },
    /is required now$/,
  ],
  'a field of an answer goes': [
    ({ components }) => delete components.schemas.Job.properties.label,
    /\.label: is gone$/,
  ],
  'a field of an answer changes its type': [
    ({ components }) => {
      components.schemas.Job.properties.label = { type: 'integer' }
    },
    /\.label: was string.*, is integer$/,
  ],
  'a field of an answer can be null': [
    ({ components }) => {
      const { properties } = components.schemas.Job
      properties.name = { anyOf: [properties.name, { type: 'null' }] }
    },
    /\.name: was string, is string or null$/,
  ],
  'a field of an answer may be absent': [
    ({ components }) => components.schemas.Job.required.shift(),
    /may be absent now$/,
  ],
  'a field of a request goes': [
    ({ components }) => delete components.schemas.WebhookUpdate.properties.events,
    /\.events: is gone$/,
  ],
  'a field of a request becomes required': [
    ({ components }) => {
      components.schemas.WebhookUpdate.required = ['url']
    },
    /\.url: is required now$/,
  ],
  'a limit of a request becomes stricter': [
    ({ components }) => {
      components.schemas.WebhookUpdate.properties.description.anyOf[0].maxLength = 499
    },
    /\.description: maxLength is 499 now$/,
  ],
  'a value of a request goes': [
    ({ components }) => components.schemas.WebhookTest.properties.type.anyOf[0].enum.shift(),
    /\.type: job\.done is gone$/,
  ],
  'a status goes': [
    ({ paths }) => delete paths['/api/v1/documents/{id}'].get.responses['404'],
    /does not answer 404 any more$/,
  ],
}

for (const [name, [change, expected]] of Object.entries(BREAKS))
  test(`finds that ${name}`, () => {
    const breaks = breaksOf(change)
    assert.ok(
      breaks.some((line) => expected.test(line)),
      breaks.join('\n'),
    )
  })

test('additions are no breaks', () => {
  const breaks = breaksOf(({ paths, components }) => {
    paths['/api/v1/new'] = paths['/api/v1/documents']
    paths['/api/v1/documents'].get.parameters.push({ name: 'more', in: 'query', schema: { type: 'string' } })
    components.schemas.Job.properties.more = { type: 'string' }
    components.schemas.Job.required.push('more')
    components.schemas.WebhookUpdate.properties.more = { type: 'string' }
    components.schemas.WebhookUpdate.properties.description.anyOf[0].maxLength = 501
    components.schemas.WebhookTest.properties.type.anyOf[0].enum.push('more')
  })
  assert.deepEqual(breaks, [])
})

test('names of settings, metrics and processes stay', () => {
  const released = {
    ...current,
    settings: [...current.settings, 'OLD'],
    metrics: ['old_total'],
    processes: ['old'],
  }
  assert.deepEqual(findBreaks(released, current), [
    'settings: OLD is gone',
    'metrics: old_total is gone',
    'processes: old is gone',
  ])
})
