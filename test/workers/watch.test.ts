import assert from 'node:assert/strict'
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { StartError } from '../../sql/server/start-error.ts'
import { type Effect, effectsOf, watchCode } from '../../workers/processes/watch.ts'
import { until } from '../until.ts'

test('a changed file restarts only the processes that load it', () => {
  const cases: readonly (readonly [string, readonly Effect[]])[] = [
    ['edge/routes/tasks.ts', ['edges']],
    ['edge/guides/jobs.md', ['edges']],
    ['edge/pages/pages.json', ['edges']],
    ['edge/pages/monitor/job.js', []],
    ['edge/pages/head.html', []],
    ['edge/cli/run.ts', []],
    ['edge/README.md', []],
    ['edge/routes/.tasks.ts.swp', []],
    ['edge/routes/tasks.ts~', []],
    ['tasks/system/noop.task.ts', ['edges', 'workers']],
    ['tasks/system/prune.work.ts', ['workers']],
    ['tasks/index.ts', ['edges', 'workers']],
    ['workers/attempts/lease.ts', ['workers']],
    ['workers/children/pdf/pdf.ts', ['workers']],
    ['workers/processes/isolated-main.ts', ['workers']],
    ['workers/processes/start-all.ts', ['start']],
    ['sql/jobs/jobs.ts', ['edges', 'workers']],
    ['sql/jobs/functions/job_claim.sql', ['migrate']],
    ['sql/schema.sql', []],
    ['sql/.data/postgres/postmaster.pid', []],
  ]
  for (const [path, effects] of cases) assert.deepEqual(effectsOf(path), effects, path)
  assert.deepEqual(effectsOf('edge/pages/monitor/new.js', true), ['edges'])
})

/** Watches a folder with a file in each room. Returns the restarts and the log. */
function startWatch(t: TestContext, migrate: () => Promise<unknown> = async () => {}) {
  const root = mkdtempSync(join(tmpdir(), 'millrace-watch-'))
  for (const room of ['edge', 'sql', 'tasks', 'workers'])
    mkdirSync(join(root, room, 'area'), { recursive: true })
  const write = (path: string, text = `${Math.random()}`) => writeFileSync(join(root, path), text)
  write('edge/area/route.ts')
  const restarts: string[] = []
  const lines: string[] = []
  const add = (_: object, line?: string) => void lines.push(line!)
  const log = { info: add, warn: add, error: add } as never
  const restart = async (name: string) => restarts.push(name)
  const stop = watchCode({
    root,
    edges: ['edge-1'],
    workers: ['worker-1'],
    supervisor: { restart },
    migrate,
    log,
  })
  t.after(() => {
    stop()
    rmSync(root, { recursive: true })
  })
  const hasLine = (pattern: RegExp) =>
    until(`the log has ${pattern}`, () => lines.find((line) => pattern.test(line)))
  return { root, write, restarts, lines, hasLine, stop }
}

test('changes that belong together cause one restart, and the log names the file and the time', async (t) => {
  const { write, restarts, hasLine } = startWatch(t)
  write('edge/area/route.ts')
  write('edge/area/other.ts')
  await hasLine(/^Changed edge\/area\/(route|other)\.ts and 1 more: restarted edge-1 in \d+\.\d s$/)
  assert.deepEqual(restarts, ['edge-1'])
  write('tasks/area/new.task.ts')
  await hasLine(/^Changed tasks\/area\/new\.task\.ts: restarted edge-1, worker-1 in /)
})

test('a file that an editor replaces counts each time, and so do files of new folders', async (t) => {
  const { root, write, restarts, hasLine } = startWatch(t)
  for (const count of [1, 2]) {
    write('edge/area/.route.ts.tmp')
    renameSync(join(root, 'edge/area/.route.ts.tmp'), join(root, 'edge/area/route.ts'))
    await until('the edge has restarted', () => restarts.length === count)
  }
  mkdirSync(join(root, 'workers/new/deep'), { recursive: true })
  write('workers/new/deep/a.ts')
  await hasLine(/^Changed workers\/new\/deep\/a\.ts: restarted worker-1 /)
})

test('a folder or page that is removed and created again is new', async (t) => {
  const { root, write, restarts, hasLine } = startWatch(t)
  const awaitRestart = async (change: () => void) => {
    const count = restarts.length
    change()
    await until('the edge has restarted', () => restarts.length > count)
  }
  const remove = () => rmSync(join(root, 'edge/area'), { recursive: true })
  const create = () => {
    mkdirSync(join(root, 'edge/area'))
    write('edge/area/route.ts')
  }
  await awaitRestart(remove)
  await awaitRestart(create)
  write('edge/area/one.ts')
  await hasLine(/^Changed edge\/area\/one\.ts: /)
  await awaitRestart(() => {
    remove()
    create()
  })
  write('edge/area/two.ts')
  await hasLine(/^Changed edge\/area\/two\.ts: /)

  await awaitRestart(() => {
    mkdirSync(join(root, 'edge/pages/area'), { recursive: true })
    write('edge/pages/area/page.js')
  })
  rmSync(join(root, 'edge/pages/area/page.js'))
  // The edge now lists its files without the page.
  await awaitRestart(() => write('edge/area/route.ts'))
  await awaitRestart(() => write('edge/pages/area/page.js'))
})

test('files that the service writes restart nothing', async (t) => {
  const { root, write, restarts, hasLine } = startWatch(t)
  mkdirSync(join(root, 'sql/.data'))
  write('sql/.data/postmaster.ts')
  write('workers/area/cache.bin')
  write('edge/area/route.ts')
  await hasLine(/^Changed edge\/area\/route\.ts: /)
  assert.deepEqual(restarts, ['edge-1'])
})

test('changed SQL migrates, and a migration that fails stops nothing', async (t) => {
  let runs = 0
  const { write, restarts, hasLine } = startWatch(t, async () => {
    if (runs++ === 0) throw new StartError('syntax error at or near "creat"')
  })
  write('sql/area/f.sql')
  await hasLine(/^The migration failed: syntax error/)
  write('sql/area/f.sql')
  await hasLine(/^Changed sql\/area\/f\.sql: migrated in /)
  assert.deepEqual(restarts, [])
})

test('a change of the supervisor itself asks for a new start', async (t) => {
  const { root, write, restarts, hasLine } = startWatch(t)
  cpSync(join(root, 'edge/area'), join(root, 'workers/processes'), { recursive: true })
  write('workers/processes/supervise.ts')
  await hasLine(/^Start `npm run dev` again/)
  assert.ok(!restarts.includes('edge-1'))
})
