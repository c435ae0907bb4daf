import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parse as parseYaml } from 'yaml'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { START_REFUSED_STATUS } from '../../tasks/platform/supervised.ts'
import { parseBlocks, readOperatorPages } from '../readme.ts'
import {
  assertKnownNames,
  NODE,
  operationPaths,
  parsePairs,
  procfileLines,
  ROOT,
  readFileAt,
  STOP_SECONDS,
  type Variables,
} from './deploy-help.ts'

/** The deployment examples agree with the code. */

const { port } = parseSettings({})

function parseSeconds(text: string): number {
  const found = /^(\d+)s$/.exec(text)
  assert.ok(found, text)
  return Number(found[1])
}

test('the Procfile is parsed correctly', () => {
  assert.deepEqual([...procfileLines.keys()], ['web', 'worker', 'release'])
  assert.equal(procfileLines.get('web')!.words.at(-1), 'edge/main.ts')
  assert.equal(STOP_SECONDS, 9)
})

describe('the Dockerfile', () => {
  const text = readFileAt('Dockerfile').replaceAll('\\\n', '')
  /** Returns the words of a Dockerfile instruction in JSON form. */
  const wordsOf = (instruction: string): string[] =>
    JSON.parse(new RegExp(`^${instruction} *(\\[.*\\])$`, 'm').exec(text)![1]!) as string[]

  test('has the Node version of the package', () => {
    const { dependencies } = JSON.parse(readFileAt('package.json')) as { dependencies: Variables }
    const bases = [...text.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base)
    assert.deepEqual(bases, Array(2).fill(`node:${dependencies.node}-bookworm-slim`))
  })

  test('includes what the processes need, and no settings', () => {
    const [first, ...lines] = readFileAt('.dockerignore').trim().split('\n').slice(1)
    assert.equal(first, '*')
    const taken = lines.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
    assert.deepEqual(
      taken.filter((path) => !existsSync(new URL(path, ROOT))),
      [],
    )
    for (const needed of ['package.json', 'package-lock.json', 'Procfile', 'edge', 'sql', 'tasks', 'workers'])
      assert.ok(taken.includes(needed), needed)
    assert.equal(taken.length, 8)
  })

  test('removes paths of packages that exist', () => {
    const removed = [...text.matchAll(/(?<!-exec )\brm (?:-r )?([^;\n]+)/g)].flatMap(([, paths]) =>
      paths!.trim().split(/\s+/),
    )
    assert.ok(removed.length > 12)
    for (const path of removed) {
      const pattern = `node_modules/${path.replace(/^node_modules\//, '')}`
      assert.ok(globSync(pattern, { cwd: ROOT }).length > 0, path)
    }
  })

  test('runs a line of the Procfile, or a command', () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-image-'))
    try {
      writeFileSync(
        join(folder, 'Procfile'),
        'web: exec env A=1 sh -c \'echo "$A: $$"\'\n# worker_a: echo no\n',
      )
      const [file, ...words] = wordsOf('ENTRYPOINT')
      const run = (...given: string[]): string =>
        execFileSync(file!, [...words, ...given], { cwd: folder, encoding: 'utf8' })
      assert.match(run('web'), /^1: \d+\n$/)
      assert.equal(run('printf', '%s,', 'one two', 'three'), 'one two,three,')
      assert.equal(run('/bin/echo', 'a path'), 'a path\n')
      assert.throws(() => run('worker_a'))
      assert.ok(procfileLines.has(wordsOf('CMD')[0]!))
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test('checks whether an edge is ready', () => {
    const [command, flag, script] = wordsOf('HEALTHCHECK .* CMD')
    assert.deepEqual([command, flag], ['node', '-e'])
    assert.ok(
      operationPaths.includes('/ready') && script!.includes("'/ready'") && script!.includes(`|| ${port})`),
    )
    assert.match(text, new RegExp(`^EXPOSE ${port}$`, 'm'))
  })

  test('sets settings, and is not root', () => {
    const env = parsePairs(/^ENV (.*)$/m.exec(text)![1]!)
    assertKnownNames(env, 'Dockerfile')
    assert.equal(env.NODE_ENV, 'production')
    assert.match(text, /^USER [1-9]\d*:[1-9]\d*$/m)
  })
})

interface Service {
  readonly image: string
  readonly command?: readonly string[]
  readonly environment?: Variables
  readonly read_only?: boolean
  readonly cap_drop?: readonly string[]
  readonly cap_add?: readonly string[]
  readonly security_opt?: readonly string[]
  readonly stop_grace_period?: string
  readonly healthcheck?: { readonly disable?: boolean }
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
}

describe('compose.yaml', () => {
  const text = readFileAt('compose.yaml')
  const { services, configs } = parseYaml(text, { merge: true }) as {
    readonly services: Readonly<Record<string, Service>>
    readonly configs: Readonly<Record<string, { readonly content: string }>>
  }
  const ours = Object.entries(services).filter(([, { image }]) => image === 'millrace')
  const given: Variables = {
    SECRET_KEY: 'a secret for tests, long enough to be one',
    POSTGRES_PASSWORD: 'secret',
    POSTGRES_APP_PASSWORD: 'another',
    S3_SECRET_KEY: 'secretsecret',
    MINIO_ROOT_PASSWORD: 'rootsecret',
  }
  const fillVariables = (value: string): string =>
    value.replace(/\$\{(\w+)(?::-([^}]*))?[^}]*\}/g, (_, name: string, other?: string) => {
      const found = given[name] ?? other
      assert.ok(found !== undefined, `${name} has no value`)
      return found
    })

  test('runs every line of the Procfile, from one read-only image', () => {
    assert.deepEqual(new Set(ours.flatMap(([, { command }]) => command!)), new Set(procfileLines.keys()))
    for (const [name, service] of ours) {
      assert.equal(service.command!.length, 1, name)
      assert.equal(service.read_only, true, name)
      assert.ok(parseSeconds(service.stop_grace_period!) > STOP_SECONDS, name)
      // Only edges have a port, and therefore a health check.
      assert.equal(service.healthcheck?.disable ?? false, service.command![0] !== 'web', name)
    }
  })

  test('gives all services the same valid settings, and the release the owner’s database', () => {
    const settingsOf = ({ environment }: Service) =>
      parseSettings({
        NODE_ENV: 'production',
        ...Object.fromEntries(
          Object.entries(environment!).map(([name, value]) => [name, fillVariables(value)]),
        ),
      })
    const web = services.web1!
    for (const [name, service] of ours.filter(([name]) => name !== 'release')) {
      assertKnownNames(service.environment!, name)
      assert.deepEqual(service.environment, web.environment, name)
    }
    assert.ok(settingsOf(web).databasePooled)
    assertKnownNames(services.release!.environment!, 'release')
    const { databaseUrl, databaseUrlUnpooled, databaseAppRole, databasePooled, ...release } = settingsOf(
      services.release!,
    )
    assert.equal(new URL(settingsOf(web).databaseUrl!).username, databaseAppRole)
    assert.notEqual(new URL(databaseUrl!).username, databaseAppRole)
    assert.deepEqual([databasePooled, databaseUrlUnpooled], [false, databaseUrl])
    for (const [name, value] of Object.entries(release))
      assert.deepEqual(value, settingsOf(web)[name as keyof typeof release], name)
  })

  test('gives services only the rights that they need', () => {
    const added: Record<string, readonly string[]> = {}
    for (const [name, { cap_drop, cap_add, security_opt }] of Object.entries(services)) {
      assert.deepEqual([cap_drop, security_opt], [['ALL'], ['no-new-privileges:true']], name)
      if (cap_add !== undefined) added[name] = cap_add
    }
    assert.deepEqual(added, {
      caddy: ['NET_BIND_SERVICE'],
      postgres: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID'],
    })
    const root = fillVariables(services.minio!.environment!.MINIO_ROOT_PASSWORD!)
    for (const [name, { environment }] of ours) assert.ok(!JSON.stringify(environment).includes(root), name)
    const { policy } = configs
    const { Statement: statements } = JSON.parse(policy!.content) as {
      Statement: { Action: string[]; Resource: string[] }[]
    }
    const bucket = services.web1!.environment!.BLOB_STORE!.replace('s3://', 'arn:aws:s3:::')
    assert.deepEqual(
      statements.map(({ Resource }) => Resource),
      [[`${bucket}/*`], [bucket]],
    )
    assert.ok(statements.every(({ Action }) => Action.every((action) => !action.includes('*'))))
  })

  test('refuses to start without a secret', () => {
    const used = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name!)
    for (const name of [...used, ...Object.keys(given)])
      assert.match(text, new RegExp(`\\$\\{${name}:\\?`), name)
  })

  test('waits for the release', () => {
    for (const [name, { command, depends_on }] of ours) {
      const expected = command![0] === 'release' ? undefined : 'service_completed_successfully'
      assert.equal(depends_on!.release?.condition, expected, name)
      for (const other of Object.keys(depends_on!)) assert.ok(services[other], other)
    }
  })

  test('has a balancer that checks whether both edges are ready', () => {
    const caddy = readFileAt('deploy/caddy/Caddyfile')
    const edges = ours.filter(([, { command }]) => command![0] === 'web').map(([name]) => `${name}:${port}`)
    assert.equal(edges.length, 2)
    assert.ok(caddy.includes(`reverse_proxy ${edges.join(' ')} {`))
    assert.ok(operationPaths.includes(/health_uri (\S+)/.exec(caddy)![1]!))
    // An edge closes idle connections after 10 s, so the balancer must close them earlier.
    assert.ok(parseSeconds(/keepalive (\S+)/.exec(caddy)![1]!) < 10)
  })

  test('has a pooler with the settings of the README', () => {
    const lines = readFileAt('deploy/pgbouncer/pgbouncer.ini').split('\n')
    const { text: wanted } = parseBlocks(readOperatorPages()).find(
      ({ language }) => language === 'pgbouncer',
    )!
    for (const line of wanted.trim().split('\n')) assert.ok(lines.includes(line), line)
    assert.ok(!lines.some((line) => line.startsWith('ignore_startup_parameters')))
  })
})

describe('the systemd units', () => {
  const units = globSync('deploy/systemd/*.service', { cwd: ROOT }).map((path) => {
    const text = readFileAt(path)
    const valuesOf = (name: string): string[] =>
      [...text.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value]) => value!)
    return { name: /millrace-(\w+)/.exec(path)![1]!, text, valuesOf }
  })

  test('match the lines of the Procfile', () => {
    assert.deepEqual(new Set(units.map(({ name }) => name)), new Set(procfileLines.keys()))
    for (const { name, valuesOf } of units) {
      const { env, words } = procfileLines.get(name)!
      const [folder] = valuesOf('WorkingDirectory')
      assert.deepEqual(valuesOf('ExecStart'), [`${folder}/${NODE} ${words.join(' ')}`], name)
      const { NODE_ENV, DATA_DIR, PORT, ...rest } = parsePairs(valuesOf('Environment').join(' '))
      assert.deepEqual(rest, env, name)
      assert.equal(NODE_ENV, 'production', name)
      assert.equal(DATA_DIR, `/var/lib/${valuesOf('StateDirectory')[0]}`, name)
      assert.equal(PORT, name === 'web' ? '%i' : undefined, name)
    }
  })

  test('stop in order, and restart unless that is pointless', () => {
    for (const { name, valuesOf } of units.filter((unit) => unit.name !== 'release')) {
      assert.ok(Number(valuesOf('TimeoutStopSec')[0]) > STOP_SECONDS, name)
      assert.deepEqual(valuesOf('KillSignal'), ['SIGTERM'], name)
      assert.deepEqual(valuesOf('RestartPreventExitStatus'), [String(START_REFUSED_STATUS)], name)
    }
  })

  test('have the same sandbox', () => {
    const sandboxes = units.map(({ text }) =>
      text.slice(text.indexOf('StateDirectory=')).split('\n[Install]')[0]!.trim(),
    )
    assert.match(sandboxes[0]!, /^ProtectSystem=strict$/m)
    for (const sandbox of sandboxes) assert.equal(sandbox, sandboxes[0])
  })
})
