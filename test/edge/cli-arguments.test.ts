import assert from 'node:assert/strict'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import { parseDuration } from '../../edge/cli/arguments.ts'
import * as logs from '../../edge/cli/commands/logs.ts'
import { EVENT_NAMES, EVENT_SCOPES } from '../../edge/cli/events.ts'
import { formatDuration } from '../../edge/cli/output.ts'
import { MAX_EVENTS } from '../../edge/routes/jobs/shapes.ts'
import { areaOfMessage } from '../../edge/routes/webhooks/events.ts'
import { MAX_LOG_LINES } from '../../sql/jobs/log.ts'
import { WEBHOOK_EVENTS } from '../../sql/webhooks/webhooks.ts'
import { until } from '../until.ts'
import { runCli, startCli } from './cli-help.ts'

/** Arguments and help of the command line, without a service. */

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
      const scopes = /^A key needs the scopes? (.*)\.$/m.exec(out)?.[1]?.split(', ')
      assert.deepEqual(
        scopes?.filter((scope) => !/^[a-z]+:(read|write)$/.test(scope)),
        name === 'new task' ? undefined : [],
      )
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
    ['enqueue a --priority top', /^--priority must be one of low, normal, high, not top$/m],
    ['enqueue a --priority low,high', /^--priority must be one of low, normal, high, not low,high$/m],
    ['enqueue a --when-busy wait,join', /^--when-busy must be one of wait, .*, not wait,join$/m],
    ['enqueue a --key one --key two', /^--key is given twice$/m],
    ['enqueue words/count --queue other', /^--queue other: words\/count names the queue words$/m],
    ['jobs --status failed,cancelled', /^--status must be one of waiting, .*, not failed,cancelled$/m],
    ['jobs --limit 0', /^--limit must be an integer from 1 to 10000, not 0$/m],
    ['jobs --limit many', /^--limit must be an integer/m],
    ['jobs extra', /^Unexpected argument: extra$/m],
    ['jobs --url mill', /^The address of the service must be a URL such as http:\/\/127\.0\.0\.1:8000$/m],
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

  test('JSON in another encoding than UTF-8 is refused', async () => {
    const file = join(folder, 'latin.json')
    const bytes = Buffer.from('{"name":"é"}', 'latin1')
    writeFileSync(file, bytes)
    for (const [words, message] of [
      [['batch', file], /latin\.json must be UTF-8$/m],
      [['batch', '-'], /^The batch must be UTF-8$/m],
      [['enqueue', 'a', '--args', `@${file}`], /latin\.json must be UTF-8$/m],
    ] as const) {
      const { status, err } = await runCli(words, { env, stdin: bytes })
      assert.match(err, message)
      assert.equal(status, 2)
    }
  })

  test('Ctrl-C ends a command that waits for its standard input', async () => {
    let isRead = false
    const stdin = new Readable({
      read: () => {
        isRead = true
      },
    })
    const command = startCli(['batch', '-'], { env, stdin })
    await until('the input is read', () => isRead)
    command.interrupt()
    assert.deepEqual([await command.status, command.out(), command.err()], [130, '', ''])
  })
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

test('a secret in a wrong argument is not shown', async () => {
  const url = 'http://user:secret@127.0.0.1:1'
  const hooks = ['webhooks', 'listen', '--forward']
  for (const [words, env, message] of [
    [['jobs'], { MILLRACE_URL: url }, /^The address of the service must have no user name and no password$/m],
    [['jobs'], { MILLRACE_URL: `${url}:x` }, /^The address of the service must be a URL such as/m],
    [['jobs'], { MILLRACE_KEY: 'secret\nsecret' }, /^The API key must have only printable ASCII characters/m],
    [['jobs', '--api-key', 'secreté'], {}, /^The API key must have only printable ASCII characters/m],
    [[...hooks, url], {}, /^--forward must have no user name and no password$/m],
    [[...hooks, 'http://a/b', '--port', '1', '--address', url], {}, /^--address must have no user name/m],
  ] as const) {
    const { status, out, err } = await runCli(words, { env })
    assert.match(err, message)
    assert.deepEqual([status, out, err.includes('secret')], [2, '', false])
  }
})

test('the events, their scopes and the limits of logs are those of the service', () => {
  assert.deepEqual(EVENT_NAMES, WEBHOOK_EVENTS)
  assert.deepEqual(
    Object.values(EVENT_SCOPES),
    WEBHOOK_EVENTS.map((event) => `${areaOfMessage(event)}:read`),
  )
  assert.deepEqual([logs.MAX_EVENTS, logs.MAX_LOG_LINES], [MAX_EVENTS, MAX_LOG_LINES])
})
