import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../until.ts'
import { createKey } from './api-keys-help.ts'
import { type CliOptions, runCli, startCli } from './cli-help.ts'
import { createEmail, getSharedEdge } from './harness.ts'
import { createLedger } from './ledger.ts'

/** Commands for jobs, against an edge whose jobs the test itself runs. */

const { api, admin, ...database } = await getSharedEdge()
const { query } = database
const ledger = createLedger(database)
const [owner, other] = [await api.register(createEmail('owner')), await api.register(createEmail('other'))]
const { key } = await createKey(api, owner)
const env = { MILLRACE_URL: `http://127.0.0.1:${api.port}`, MILLRACE_KEY: key }
const run = (words: readonly string[], options: CliOptions = {}) => runCli(words, { env, ...options })
const start = (words: readonly string[], options: CliOptions = {}) => startCli(words, { env, ...options })
const readJob = async (id: string) => (await query('select * from job where id = $1', [id]))[0]!
const UNKNOWN = '01a20118-fbcc-738c-80ed-00058e0e401d'
const parse = (lines: string) =>
  lines
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

const FAILURE = { code: 'document.empty', detail: 'The file is empty' }
let documents = 2_000_000_000
const addFailed = async () => {
  const payload = { documentId: ++documents, force: true }
  const id = await ledger.add(owner.id, { payload, actor: `document:${documents}` })
  await ledger.claim(id)
  await ledger.finish(id, 'failed', FAILURE)
  return id
}

describe('enqueue', () => {
  test('adds a job with its options, and writes the id', async () => {
    const args = [
      '--args',
      '{"echo":"hi"}',
      '--key',
      'k',
      '--delay',
      '10m',
      '--priority',
      'low',
      '--when-busy',
      'join',
    ]
    const { status, out, err } = await run(['enqueue', 'noop', ...args])
    assert.equal(status, 0, err)
    const id = out.trim()
    const {
      job,
      payload,
      key: name,
      priority,
      due_at,
    } = (await api.get(`/api/v1/jobs/${id}/details`, { token: owner.token })).json
    assert.deepEqual([job.name, payload, name, priority], ['system.noop', { echo: 'hi' }, 'k', 'low'])
    assert.equal(Math.round((Date.parse(due_at) - Date.parse(job.created_at)) / 60_000), 10)
    assert.match(err, /^The job is queued on the queue system\n$/)
    const joined = await run(['enqueue', 'system.noop', ...args, '--json'])
    assert.equal(JSON.parse(joined.out).task_id, id)
  })

  test('reads arguments from the standard input and names queues like lists do', async () => {
    const { out } = await run(['enqueue', 'load_test.io_simulation_task', '--args', '-'], {
      stdin: '{"operations":2}',
    })
    const { name, payload } = await readJob(out.trim())
    assert.equal(name, 'load_test.io_simulation_task')
    assert.equal((payload as { operations: number }).operations, 2)
    const unknown = await run(['enqueue', 'words/count'])
    assert.equal(unknown.status, 3)
    assert.match(unknown.err, /\(task\.unknown_queue\)/)
    const invalid = await run(['enqueue', 'noop', '--args', '{"ech":1}'])
    assert.deepEqual([invalid.status, invalid.out], [3, ''])
    assert.match(invalid.err, /^args: has no ech; .*\(request\.invalid\)\n$/)
  })

  test('with --wait shows the progress, then the result', async () => {
    const command = start(['enqueue', 'noop', '--wait'])
    const id = await findNewest()
    await ledger.claim(id)
    await ledger.progress(id, 'Halfway', 1, 2)
    await until('the progress is shown', () => command.err().includes('noop  running  1/2 Halfway'))
    await ledger.finish(id, 'done', { result: { echo: 'x' } })
    assert.equal(await command.status, 0)
    assert.deepEqual(JSON.parse(command.out()), { echo: 'x' })
    assert.match(command.err(), /noop {2}done/)
  })

  test('with --wait exits with 1 if the job fails, and says how to go on', async () => {
    for (const json of [[], ['--json']]) {
      const command = start(['enqueue', 'noop', '--wait', ...json])
      const id = await findNewest()
      await ledger.claim(id)
      await ledger.finish(id, 'failed', FAILURE)
      assert.equal(await command.status, 1)
      if (json.length > 0) assert.equal(JSON.parse(command.out()).status, 'failed')
      else {
        assert.equal(command.out(), '')
        assert.match(
          command.err(),
          /The file is empty \(document\.empty\)\nSee: npx millrace logs \S+\nTry again: npx/,
        )
      }
    }
  })

  test('with --wait ends quietly with 130 at Ctrl-C, and the job goes on', async () => {
    const command = start(['enqueue', 'noop', '--wait'], { isTTY: true })
    const id = await findNewest()
    await until('the state is shown', () => command.err().includes('noop  queued'))
    command.interrupt()
    assert.equal(await command.status, 130)
    assert.match(
      command.err(),
      new RegExp(`\\r\\u{1b}\\[KThe job goes on: npx millrace logs ${id} --follow\\n$`, 'u'),
    )
    assert.equal((await readJob(id)).status, 'available')
    await query('select job_cancel(array[$1::uuid])', [id])
  })

  /** Waits for a new job of the owner that has not started, and returns its id. */
  async function findNewest(): Promise<string> {
    const found = await until('a job was added', async () =>
      (
        await query(
          `select id from job where owner_id = $1 and name = 'system.noop' and status = 'available' and attempt = 0`,
          [owner.id],
        )
      ).at(0),
    )
    return found.id as string
  }
})

describe('jobs', () => {
  test('lists own jobs as a table or as JSON, filtered and limited', async () => {
    const failed = await addFailed()
    const table = await run(['jobs', '--status', 'failed', '--limit', '1'])
    const [titles, row] = table.out.split('\n')
    assert.match(titles!, /^JOB {35}TASK {15}STATUS {2}ADDED {2,}RAN {2,}DETAIL$/)
    assert.match(
      row!,
      new RegExp(
        `^${failed} {2}documents\\.extract {2}failed {2}\\S+ ago {2,}\\S+ {2,}The file is empty \\(document\\.empty\\)$`,
      ),
    )
    const json = await run(['jobs', '--json', '--task', 'documents.extract', '--queue', 'documents'])
    assert.ok(parse(json.out).every(({ name }) => name === 'documents.extract'))
    const none = await run(['jobs', '--task', 'no.such'])
    assert.deepEqual([none.status, none.out, none.err], [0, '', 'No jobs\n'])
  })

  test('reads further pages up to the limit', async () => {
    const many = await api.register(createEmail('many'))
    await ledger.addMany(many.id, 230)
    const { key } = await createKey(api, many)
    const options = { env: { ...env, MILLRACE_KEY: key } }
    assert.equal(parse((await run(['jobs', '--json', '--limit', '220'], options)).out).length, 220)
    assert.equal(parse((await run(['jobs', '--json', '--limit', '500'], options)).out).length, 230)
  })

  test('with --follow shows each change once, until Ctrl-C', async () => {
    const follower = await api.register(createEmail('follower'))
    const { key } = await createKey(api, follower)
    const [before, ended] = [await ledger.add(follower.id), await ledger.addFinished(follower.id)]
    const command = start(['jobs', '--follow'], { env: { ...env, MILLRACE_KEY: key } })
    await until('the list is shown', () => command.out().includes(ended))
    const id = await ledger.add(follower.id)
    await until('the new job is shown', () => command.out().includes(`${id}  documents.extract  queued`))
    await ledger.claim(id)
    await ledger.progress(id, 'Page 1', 1, 3)
    await until('the progress is shown', () => command.out().includes('running    1/3 Page 1'))
    await ledger.finish(id, 'failed', FAILURE)
    await until('the error is shown', () => command.out().includes('failed     The file is empty'))
    command.interrupt()
    assert.equal(await command.status, 130)
    assert.match(command.err(), /^Stopped following\. The jobs go on\.\n$/)
    const lines = command.out().split('\n')
    for (const listed of [before, ended])
      assert.equal(lines.filter((line) => line.includes(listed)).length, 1)
  })

  test('with --follow and filters shows only jobs that match', async () => {
    const command = start(['jobs', '--follow', '--json', '--status', 'failed', '--queue', 'documents'])
    const ids = [await ledger.addFinished(owner.id), await addFailed()]
    await until('the failed job is shown', () => command.out().includes(ids[1]!))
    command.interrupt()
    await command.status
    assert.ok(
      parse(command.out()).every(({ status, name }) => status === 'failed' && name === 'documents.extract'),
    )
  })
})

describe('logs', () => {
  const addLines = (id: string) =>
    query(
      `insert into job_log (job_id, attempt, at, level, message, data)
       select id, attempt, now(), 'warn', 'Slow page', '{"page":3,"note":"a\\u001bb"}' from job where id = $1`,
      [id],
    )

  test('shows events, log lines and the error in the order of time', async () => {
    const id = await ledger.add(owner.id, { name: 'words/count', queue: 'words' })
    await ledger.claim(id)
    await ledger.progress(id, 'Page 3', 3, 9)
    await addLines(id)
    await ledger.finish(id, 'failed', FAILURE)
    const { key } = await createKey(api, admin)
    const options = { env: { ...env, MILLRACE_KEY: key } }
    const { status, out } = await run(['logs', id], options)
    assert.equal(status, 0)
    const lines = out
      .trim()
      .split('\n')
      .map((line) => line.replace(/^\d{4}-\S+ +/, ''))
    assert.match(lines[0]!, /^words\/count: failed in \S+, try 1 of \d+, added \S+$/)
    assert.deepEqual(
      lines.slice(1).filter((line) => !line.startsWith('failed')),
      [
        'running',
        'running    3/9 Page 3',
        'warn       Slow page  note=a b  page=3',
        'error      The file is empty (document.empty)',
      ],
    )
    const json = parse((await run(['logs', id, '--json'], options)).out)
    assert.deepEqual([...new Set(json.map(({ kind }) => kind))].sort(), ['error', 'log', 'status'])
  })

  test('says that log lines are for admins', async () => {
    const id = await ledger.addFinished(owner.id)
    const { err } = await run(['logs', id])
    assert.equal(err, 'Log lines of this job are for admins\n')
  })

  test('with --follow shows new lines until the job ends, or Ctrl-C', async () => {
    const id = await ledger.add(owner.id)
    let now = 0
    // Each look at the clock is a second later, so that the command does not wait for late log lines.
    const ended = start(['logs', id, '--follow'], { now: () => (now += 3000) })
    const stopped = start(['logs', id, '--follow'])
    await until('both read the job', () => ended.out() !== '' && stopped.out() !== '')
    await ledger.claim(id)
    await ledger.progress(id, 'Page 1', 1, 2)
    await until('the progress is shown', () => stopped.out().includes('1/2 Page 1'))
    stopped.interrupt()
    assert.equal(await stopped.status, 130)
    assert.match(stopped.err(), /^Stopped following\. The job goes on: npx millrace logs \S+ --follow\n$/)
    await ledger.finish(id, 'done', { result: null })
    assert.equal(await ended.status, 0)
    assert.match(ended.out(), /done/)
  })
})

describe('retry and cancel', () => {
  test('act on each job, and a refusal of one does not stop the others', async () => {
    const [one, two] = [await addFailed(), await addFailed()]
    const retried = await run(['retry', one, UNKNOWN, two])
    assert.deepEqual([retried.status, retried.err], [3, `${UNKNOWN}: Job not found\n`])
    const ids = retried.out.trim().split('\n')
    const sources = await query('select retry_of from job where id = any($1)', [ids])
    assert.deepEqual(sources.map(({ retry_of }) => retry_of).sort(), [one, two].sort())
    const cancelled = await run(['cancel', ...ids])
    assert.deepEqual([cancelled.status, cancelled.out], [0, ids.map((id) => `${id}  cancelled\n`).join('')])
    assert.equal(JSON.parse((await run(['cancel', ids[0]!, '--json'])).out).status, 'cancelled')
    assert.equal((await run(['retry', ids[0]!])).status, 3)
  })

  test('retry --wait shows the result of the new job', async () => {
    const id = await addFailed()
    const command = start(['retry', id, '--wait'])
    const again = await until('it is retried', async () =>
      (await query('select id from job where retry_of = $1', [id])).at(0),
    )
    await ledger.claim(again.id as string)
    await ledger.finish(again.id as string, 'done', { result: { read: 1 } })
    assert.equal(await command.status, 0)
    assert.deepEqual(JSON.parse(command.out()), { read: 1 })
  })
})

describe('a key', () => {
  test('that is missing, wrong or too narrow is refused with the scope that is needed', async () => {
    const narrow = (await createKey(api, owner, { scopes: ['documents:read'] })).key
    for (const [MILLRACE_KEY, message] of [
      [
        '',
        /^Set MILLRACE_KEY to an API key with the scope jobs:read\. Create one at http:\S+\/account\/keys\.$/m,
      ],
      ['wrong', /^Check MILLRACE_KEY: the service does not accept it\./m],
      [narrow, /^Set MILLRACE_KEY to an API key with the scope jobs:read\./m],
    ] as const) {
      const { status, out, err } = await run(['jobs'], { env: { ...env, MILLRACE_KEY } })
      assert.deepEqual([status, out], [3, ''])
      assert.match(err, message)
    }
  })

  test('of the command line takes precedence over the environment, as the URL does', async () => {
    const { key } = await createKey(api, other)
    const bad = { MILLRACE_URL: 'http://127.0.0.1:9', MILLRACE_KEY: 'wrong' }
    const { status, err } = await run(['jobs', '--api-key', key, '--url', env.MILLRACE_URL], { env: bad })
    assert.deepEqual([status, err], [0, 'No jobs\n'])
  })

  test('of an address with a path is explained', async () => {
    const { status, err } = await run(['jobs', '--url', `${env.MILLRACE_URL}/api`])
    assert.equal(status, 3)
    assert.match(
      err,
      /\(route\.missing\)\nCheck MILLRACE_URL: it is the address of the service, without a path\.\n$/,
    )
  })
})

describe('batch', () => {
  const BATCH = '[{"task_name":"noop"},{"task_name":"noop","after":[0]}]'

  test('adds the jobs of a file or of the standard input', async () => {
    const { status, out, err } = await run(['batch', '-'], { stdin: BATCH })
    assert.deepEqual([status, err], [0, 'The batch has 2 jobs\n'])
    assert.equal((await readJob(out.trim())).name, 'jobs.batch')
    const named = await run(['batch', '-', '--json'], { stdin: `{"name":"nightly","jobs":${BATCH}}` })
    assert.equal(JSON.parse(named.out).job_ids.length, 2)
    const unknown = await run(['batch', '-'], { stdin: '[{"task_name":"no_such"}]' })
    assert.equal(unknown.status, 3)
    assert.match(unknown.err, /\(task\.unknown\)\n$/)
  })

  test('with --wait ends quietly with 130 at Ctrl-C', async () => {
    const command = start(['batch', '-', '--wait'], { stdin: BATCH })
    await until('the progress is shown', () => command.err().includes('0/2'))
    command.interrupt()
    assert.equal(await command.status, 130)
    assert.match(command.err(), /The batch \S+ goes on\n$/)
  })
})
