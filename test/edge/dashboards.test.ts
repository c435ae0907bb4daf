import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parse as parseYaml } from 'yaml'
import { addTallies, HISTOGRAM_BOUNDS } from '../../sql/jobs/tallies.ts'
import { until } from '../until.ts'
import { startEdgeAndDatabase } from './harness.ts'

/** The alert rules and the dashboard in `deploy` must use only metrics of `/metrics`. */

const { api, db, query } = await startEdgeAndDatabase()
const readProjectFile = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}
const rules = (
  parseYaml(readProjectFile('deploy/prometheus/alerts.yml')) as { groups: { rules: Rule[] }[] }
).groups.flatMap((group) => group.rules)

interface Panel {
  readonly id: number
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[]
}
const { panels } = JSON.parse(readProjectFile('deploy/grafana/millrace.json')) as { panels: Panel[] }

// Metrics that this edge lacks: those of Prometheus itself and of edges with a replica.
const EXTERNAL_METRICS = ['up', 'replica_used', 'replica_lag_seconds', 'lagging_reads_total']
const PROMQL_WORDS = new Set(
  'sum max by on rate increase absent histogram_quantile topk and or unless le instance'.split(' '),
)

/** Returns the metrics in an expression, each with its labels. */
function parseMetrics(expr: string): { name: string; labels: string[] }[] {
  const plain = expr.replace(/"[^"]*"/g, '""').replace(/\[[^\]]*\]/g, '')
  const grouped = plain.replace(/\b(?:by|on) \([^)]*\)/g, '')
  return [...grouped.matchAll(/([a-z_]{2,})(?:\{([^}]*)\})?/g)]
    .map(([, name, labels = '']) => ({
      name: name!,
      labels: [...labels.matchAll(/([a-z_]+)=/g)].map(([, label]) => label!),
    }))
    .filter(({ name }) => !PROMQL_WORDS.has(name))
}

test('every expression uses existing metrics and labels', async () => {
  const times = new Array(HISTOGRAM_BOUNDS.length + 1).fill(1)
  const of = {
    queue: 'ai',
    name: 'ai.chat',
    attempts: 1,
    run_seconds: 1,
    wait_seconds: 1,
    runs: times,
    waits: times,
  }
  await db.run(
    addTallies(
      [
        { ...of, outcome: 'failed' },
        { ...of, outcome: 'retry' },
      ],
      {},
    ),
  )
  await query(
    `insert into worker_lease (id, name, queues, expires_at) values (gen_random_uuid(), 'host/1', '{ai}', now() + interval '1 hour')`,
  )
  await query(`insert into job_count (queue, queued, running) values ('ai', 1, 1)`)
  await api.get('/nowhere')
  const text = await until('the text has all metrics', async () => {
    const { text } = await api.get('/metrics')
    return text.includes('jobs_ended_total{') && text.includes('http_refusals_total{') && text
  })
  const labelsOf = new Map<string, Set<string>>()
  for (const [, name, labels = ''] of text.matchAll(/^([a-z_]+)(?:\{([^}]*)\})? /gm)) {
    const known = labelsOf.get(name!) ?? new Set()
    labelsOf.set(name!, known)
    for (const [, label] of labels.matchAll(/([a-z_]+)="/g)) known.add(label!)
  }
  const expressions = [
    ...rules.map(({ expr }) => expr),
    ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ]
  const named = expressions.flatMap(parseMetrics)
  assert.ok(named.length > 40)
  for (const { name, labels } of named) {
    if (EXTERNAL_METRICS.includes(name)) continue
    const known = labelsOf.get(name)
    assert.ok(known !== undefined, `${name} is not in /metrics`)
    // Prometheus adds `job`, the name of the scrape job. Other programs have metrics of the same names.
    assert.ok(labels.includes('job'), `${name} of any program`)
    for (const label of labels)
      assert.ok(label === 'job' || known.has(label), `${name} has no label ${label}`)
  }
  for (const expr of expressions)
    for (const [, grouped] of expr.matchAll(/\bby \(([^)]*)\)/g))
      for (const label of grouped!.split(', '))
        assert.ok(
          label === 'instance' ||
            label === 'server' ||
            [...labelsOf.values()].some((known) => known.has(label)),
          `${label} in ${expr}`,
        )
})

test('rules have unique names, severities and descriptions, and panels have positions', () => {
  assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length)
  for (const { alert, labels, annotations } of rules) {
    assert.match(alert, /^Millrace[A-Z][A-Za-z]+$/)
    assert.ok(['warning', 'critical'].includes(labels.severity!), alert)
    assert.ok(annotations.summary!.length > 20, alert)
  }
  const places = panels.map(({ gridPos: { x, y, w, h } }) => `${x} ${y} ${w} ${h}`)
  assert.equal(new Set(places).size, panels.length)
  assert.equal(new Set(panels.flatMap(({ id, title }) => [String(id), title])).size, panels.length * 2)
})

test('paths of the monitor exist', async () => {
  const paths = rules.flatMap(({ annotations }) =>
    [...annotations.summary!.matchAll(/\/monitor\S*/g)].map(([path]) => path),
  )
  assert.ok(paths.length > 0)
  for (const path of paths) assert.equal((await api.get(path)).status, 200, path)
})
