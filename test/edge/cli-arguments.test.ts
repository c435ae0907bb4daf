import assert from 'node:assert/strict'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { findNearest, parseDuration } from '../../edge/cli/arguments.ts'
import { EVENT_NAMES } from '../../edge/cli/events.ts'
import { describeFailure } from '../../edge/cli/failure.ts'
import { clean, createOutput, formatDuration } from '../../edge/cli/output.ts'
import { RequestError } from '../../edge/client/connection.ts'
import { WEBHOOK_EVENTS } from '../../sql/webhooks/webhooks.ts'
import { runCli } from './cli-help.ts'

/** Arguments, help and texts of the command line, without a service. */

const COMMANDS = [
  'enqueue',
  'jobs',
  'logs',
  'retry',
  'cancel',
  'batch',
  'webhooks listen',
  'webhooks trigger',
  'new task',
]
const ID = '01a20118-fbcc-738c-80ed-00058e0e401d'
const folder = mkdtempSync(join(tmpdir(), 'millrace-cli-'))

describe('the help', () => {
  test('lists all commands and exit statuses', async () => {
    for (const words of [['--help'], ['-h'], ['help']]) {
      const { status, out, err } = await runCli(words)
      assert.deepEqual([status, err], [0, ''])
      for (const name of COMMANDS) assert.match(out, new RegExp(`^  ${name} {2}`, 'm'))
      assert.match(out, /Exit statuses: 0 done/)
    }
    const none = await runCli([])
    assert.deepEqual([none.status, none.out], [2, ''])
    assert.match(none.err, /^Usage: npx millrace COMMAND/)
  })

  test('of each command has its options, an example that is valid, and the scope', async () => {
    for (const name of COMMANDS) {
      const { status, out } = await runCli([...name.split(' '), '--help'])
      assert.equal(status, 0)
      assert.match(out, new RegExp(`^Usage: npx millrace ${name} `))
      assert.match(out, new RegExp(`^Example: npx millrace ${name} `, 'm'))
      assert.equal(/^An API key needs the scope [a-z]+:(read|write)\.$/m.test(out), name !== 'new task')
      for (const line of out.split('\n')) assert.ok(line.length <= 120, line)
      const options = [...out.matchAll(/^ {2}--([a-z-]+)/gm)].map(([, option]) => option!)
      const used = [...out.matchAll(/^Example: .*/gm)][0]![0].matchAll(/ --([a-z-]+)/g)
      for (const [, option] of used) assert.ok(options.includes(option!), option)
    }
  })
})

describe('wrong arguments', () => {
  const env = { MILLRACE_URL: 'http://127.0.0.1:1' }
  const refusals: readonly (readonly [words: string, message: RegExp])[] = [
    ['enq', /^Unknown command: enq\. Did you mean enqueue\?$/m],
    ['frobnicate', /^Unknown command: frobnicate\. See: npx millrace --help$/m],
    ['webhooks', /^Commands of webhooks: webhooks listen, webhooks trigger$/m],
    ['new', /^Commands of new: new task$/m],
    ['enqueue', /^TASK is missing\nSee: npx millrace enqueue --help$/m],
    ['enqueue a b', /^Unexpected argument: b$/m],
    ['enqueue a --quue q', /^Unknown option --quue; did you mean --queue\?$/m],
    ['enqueue a --frobnicate', /^Unknown option --frobnicate$/m],
    ['enqueue a -q', /^Unknown option -q/m],
    ['enqueue a --queue', /^--queue needs a value: --queue QUEUE$/m],
    ['enqueue a --queue --wait', /^--queue needs a value/m],
    ['enqueue a --wait=5', /^--wait takes no value$/m],
    ['enqueue a --args {', /^--args must be JSON: /m],
    ['enqueue a --args [1]', /^--args must be a JSON object$/m],
    ['enqueue a --args @/none', /^--args: can't read \/none: no such file$/m],
    [`enqueue a --args @${folder}`, /^--args: can't read .*: it is a folder$/m],
    ['enqueue a --delay soon', /^--delay must be a duration such as 30s, 10m, 2h or 1d, not soon$/m],
    ['enqueue a --priority top', /^--priority: top is none of low, normal, high$/m],
    ['enqueue a --when-busy never', /^--when-busy: never is none of wait/m],
    ['enqueue words/count --queue other', /^--queue other: words\/count names the queue words$/m],
    ['jobs --status lost', /^--status: lost is none of waiting, queued/m],
    ['jobs --limit 0', /^--limit must be an integer from 1 to 10000, not 0$/m],
    ['jobs --limit many', /^--limit must be an integer/m],
    ['jobs extra', /^Unexpected argument: extra$/m],
    [
      'jobs --url mill',
      /^The address of the service must be a URL such as http:\/\/127\.0\.0\.1:8000, not mill$/m,
    ],
    ['logs', /^JOB is missing$/m],
    ['retry', /^JOB is missing$/m],
    ['cancel', /^JOB is missing$/m],
    ['batch', /^FILE is missing$/m],
    ['batch /none.json', /^The batch: can't read \/none\.json: no such file$/m],
    ['webhooks listen', /^--forward is missing: --forward URL$/m],
    ['webhooks listen --forward 3000', /^--forward must be a URL such as/m],
    [
      'webhooks listen --forward http://a/b --events job.don',
      /^Unknown event job\.don; did you mean job\.done\?$/m,
    ],
    ['webhooks listen --forward http://a/b --port x', /^--port must be an integer/m],
    ['webhooks listen --forward http://a/b --address http://c', /^--address needs --port$/m],
    ['webhooks trigger', /^EVENT is missing$/m],
    ['webhooks trigger frobnicated', /^Unknown event frobnicated; the events are job\.done, /m],
    ['webhooks trigger job.done --endpoint x', /^--endpoint must be the number of an endpoint, not x$/m],
    ['new task', /^AREA\.VERB is missing$/m],
    ['new task Mill', /^The name of a task is AREA\.VERB in lower case, such as mill\.grind, not Mill$/m],
    ['new task mill.grind --pool big', /^--pool must be one of io, cpu, children, model, not big$/m],
  ]
  for (const [words, message] of refusals)
    test(words.replace(folder, 'FOLDER'), async () => {
      const { status, out, err } = await runCli(words.split(' '), { env })
      assert.match(err, message)
      assert.deepEqual([status, out], [2, ''])
    })

  test('a batch is an object or an array, and an open one is not awaited', async () => {
    const text = await runCli(['batch', '-'], { env, stdin: '"x"' })
    assert.match(text.err, /^- must have a JSON object or array$/m)
    const open = await runCli(['batch', '-', '--wait'], { env, stdin: '{"jobs":[],"open":true}' })
    assert.match(open.err, /^--wait: an open batch ends only once it is closed$/m)
    writeFileSync(join(folder, 'bad.json'), '{')
    const bad = await runCli(['batch', join(folder, 'bad.json')], { env })
    assert.match(bad.err, /bad\.json must be JSON: /)
    assert.deepEqual([text.status, open.status, bad.status], [2, 2, 2])
  })
})

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
    assert.equal(findNearest(given, names), nearest, given)
})

test('durations are read in seconds and written short', () => {
  assert.deepEqual(
    ['90', '90s', '1.5m', '2h', '1d'].map((text) => parseDuration('delay', text)),
    [90, 90, 90, 7200, 86_400],
  )
  assert.deepEqual([-5, 850, 9940, 59_000, 180_000, 7_300_000, 400_000_000].map(formatDuration), [
    '0ms',
    '850ms',
    '9.9s',
    '59s',
    '3m',
    '2h',
    '5d',
  ])
})

test('the events are those of the service', () => {
  assert.deepEqual(EVENT_NAMES, WEBHOOK_EVENTS)
})

describe('output', () => {
  const create = (isTTY: boolean, env: Record<string, string> = {}, columns = 20) => {
    const texts = { out: '', err: '' }
    const capture = (name: 'out' | 'err') => ({
      isTTY,
      columns,
      write: (text: string) => {
        texts[name] += text
      },
    })
    const io = { stdout: capture('out'), stderr: capture('err'), env } as never
    return { output: createOutput(io, false), out: () => texts.out, err: () => texts.err }
  }

  test('has colours and a cut at the width only on a terminal', () => {
    const row = ['1', ['green', 'done'], 'a long detail of a job'] as const
    const pipe = create(false)
    pipe.output.table(['ID', 'STATUS', 'DETAIL'], [row])
    assert.equal(pipe.out(), 'ID  STATUS  DETAIL\n1   done    a long detail of a job\n')
    const terminal = create(true)
    terminal.output.table(['ID', 'STATUS', 'DETAIL'], [row])
    assert.ok(terminal.out().includes('\u001b[32mdone    \u001b[39m'))
    const plain = create(true, { NO_COLOR: '1' })
    plain.output.table(['ID', 'STATUS', 'DETAIL'], [row])
    assert.equal(plain.out(), 'ID  STATUS  DETAIL\n1   done    a long …\n')
  })

  test('a state replaces the last one on a terminal, and has a line elsewhere', () => {
    const pipe = create(false)
    for (const text of ['one', 'one', 'two']) pipe.output.state(text)
    assert.equal(pipe.err(), 'one\ntwo\n')
    const terminal = create(true, {}, 0)
    for (const text of ['one', 'two']) terminal.output.state(text)
    terminal.output.line('result')
    assert.equal(terminal.err(), 'one\r\u001b[Ktwo\r\u001b[K')
    assert.equal(terminal.out(), 'result\n')
  })

  test('never contains control characters of a job', () => {
    assert.equal(clean('a\u001b[2Jb\r\nc\u009b'), 'a [2Jb c ')
  })
})

describe('a failed request', () => {
  const context = { url: 'http://mill', hasKey: true, scope: 'jobs:read' }
  const refuse = (status: number, problem: object | null, headers = {}, more = {}) =>
    describeFailure(new RequestError(new Response(null, { status, headers }), problem as never), {
      ...context,
      ...more,
    })!

  test('shows detail, code, fields and what to do', () => {
    const problem = { detail: 'Nope\u001b', code: 'some.code' }
    assert.deepEqual(refuse(404, problem), { status: 3, lines: ['Nope  (some.code)'] })
    assert.match(
      refuse(401, problem).lines[1]!,
      /^Check MILLRACE_KEY: .* scope jobs:read at http:\/\/mill\/account\/keys\.$/,
    )
    assert.match(
      refuse(401, problem, {}, { hasKey: false }).lines[1]!,
      /^Set MILLRACE_KEY to an API key with the scope jobs:read\./,
    )
    const header = {
      'www-authenticate': 'Bearer realm="Millrace", error="insufficient_scope", scope="webhooks:write"',
    }
    assert.match(refuse(403, problem, header).lines[1]!, /scope webhooks:write\./)
    assert.match(refuse(429, problem).lines[1]!, /^Try again later/)
    assert.match(refuse(500, problem, { 'x-request-id': 'r1' }).lines[1]!, /^Quote the request r1 /)
    const errors = [1, 2].map((n) => ({ loc: ['body', `f${n}`], msg: 'is missing', type: 'x' }))
    assert.deepEqual(refuse(422, { ...problem, errors }).lines.slice(1), [
      '  body.f1: is missing',
      '  body.f2: is missing',
    ])
  })

  test('of something else names the address', () => {
    assert.deepEqual(refuse(404, { detail: 'No such path', code: 'route.missing' }).lines.length, 2)
    assert.match(refuse(404, null).lines[0]!, /^http:\/\/mill answered 404 without an error of Millrace$/)
    assert.equal(refuse(502, null).status, 4)
    const fail = (cause: unknown) => describeFailure(new TypeError('fetch failed', { cause }), context)
    const system = (code: string) => Object.assign(new Error(code), { code })
    assert.match(fail(system('ECONNREFUSED'))!.lines[1]!, /^Start one with `npm start`/)
    assert.match(fail(new AggregateError([system('ECONNREFUSED')]))!.lines[0]!, /^No service answers/)
    assert.match(fail(system('ENOTFOUND'))!.lines[0]!, /is unknown$/)
    assert.deepEqual(fail(system('ECONNRESET')), {
      status: 4,
      lines: ["http://mill can't be reached: ECONNRESET", 'Check MILLRACE_URL or --url.'],
    })
    assert.equal(describeFailure(new TypeError('x is not a function'), context), null)
    assert.equal(describeFailure(new Error('a fault'), context), null)
  })

  test('reaches the terminal with status 4 if no service is there', async () => {
    const { status, err } = await runCli(['logs', ID], { env: { MILLRACE_URL: 'http://127.0.0.1:9999' } })
    assert.equal(status, 4)
    assert.match(err, /^No service answers at http:\/\/127\.0\.0\.1:9999\n/)
  })
})
