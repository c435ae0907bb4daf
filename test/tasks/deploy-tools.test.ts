import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { parseBlocks } from '../readme.ts'
import { NODE, ROOT, readFileAt } from './deploy-help.ts'

/** The programs that read the deployment examples accept them. A program that is not installed skips its test. */

const folder = mkdtempSync(join(tmpdir(), 'millrace-deploy-'))
after(() => rmSync(folder, { recursive: true }))
const SETTINGS = {
  SECRET_KEY: 'x',
  POSTGRES_PASSWORD: 'x',
  POSTGRES_APP_PASSWORD: 'x',
  S3_SECRET_KEY: 'x',
  MINIO_ROOT_PASSWORD: 'x',
}

/** Runs a program in the project's folder; its output is the message if it fails. */
const run = (program: string, ...args: string[]) =>
  promisify(execFile)(program, args, {
    cwd: ROOT,
    env: { ...process.env, ...SETTINGS, HOME: folder },
  })

/** Reason to skip a test: the program is missing, or does not know the command. */
function findReason(program: string, ...probe: string[]): string | false {
  const { error, status } = spawnSync(program, probe, { stdio: 'ignore' })
  return (error !== undefined || status !== 0) && `needs ${program}`
}

test('promtool accepts the alert rules', { skip: findReason('promtool', '--version') }, async () => {
  const { stdout } = await run('promtool', 'check', 'rules', 'deploy/prometheus/alerts.yml')
  assert.match(stdout, /SUCCESS: \d+ rules found/)
})

test('systemd accepts the units', { skip: findReason('systemd-analyze', '--version') }, async () => {
  const units = globSync('deploy/systemd/*.service', { cwd: ROOT }).map((path) => {
    const file = join(folder, basename(path))
    // systemd checks that the program exists.
    writeFileSync(file, readFileAt(path).replaceAll(/^ExecStart=\S+/gm, `ExecStart=${process.execPath}`))
    return file
  })
  assert.ok(units.length >= 3 && readFileSync(units[0]!, 'utf8').includes(process.execPath), NODE)
  const { stdout, stderr } = await run('systemd-analyze', 'verify', ...units)
  assert.equal(`${stdout}${stderr}`, '')
})

test('Caddy accepts its configuration', { skip: findReason('caddy', 'version') }, async () => {
  await run('caddy', 'validate', '--config', 'deploy/caddy/Caddyfile', '--adapter', 'caddyfile')
})

test('nginx accepts the block of the page', {
  skip: findReason('nginx', '-v') || findReason('openssl', 'version'),
}, async () => {
  const { text } = parseBlocks(readFileAt('deploy/operating.md')).find(
    ({ language }) => language === 'nginx',
  )!
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  await run(
    'openssl',
    ...`req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=x -keyout ${key} -out ${certificate}`.split(
      ' ',
    ),
  )
  const file = join(folder, 'nginx.conf')
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  )
  writeFileSync(
    file,
    `pid ${folder}/nginx.pid; error_log stderr; events {} http { access_log off; ${temporary.join(' ')}
    ssl_certificate ${certificate}; ssl_certificate_key ${key}; ${text} }`,
  )
  mkdirSync(join(folder, 'logs'))
  await run('nginx', '-t', '-p', folder, '-c', file)
})

test('Kustomize builds the Kubernetes example', {
  skip: findReason('kubectl', 'version', '--client'),
}, async () => {
  const { stdout } = await run('kubectl', 'kustomize', 'deploy/kubernetes')
  assert.ok(stdout.match(/^kind: /gm)!.length >= 10)
})

test('Compose accepts compose.yaml', { skip: findReason('docker', 'compose', 'version') }, async () => {
  await run('docker', 'compose', 'config', '--quiet')
})
