import { existsSync } from 'node:fs'
import { openDataDir } from '../sql/data-dir.ts'
import { runCommand, say, UsageError, withDatabase, withPool } from '../tasks/command.ts'
import { createBlobs } from '../tasks/documents/blobs.ts'
import { reasonOf } from '../tasks/outage.ts'
import { portProblem } from '../tasks/port.ts'
import type { DatabaseUrls } from '../tasks/process.ts'
import { parse, type Settings, SettingsError } from '../tasks/settings.ts'
import { checkDatabase } from './doctor/database.ts'
import { type Finding, note, ok, problem, report } from './doctor/findings.ts'
import { checkProviders } from './doctor/providers.ts'

// `npm run doctor`: looks at everything that a start and the work need. Status 1 when something is wrong.
await runCommand(async () => {
  if (process.argv.length > 2) throw new UsageError('Usage: npm run doctor')
  const findings = await examine()
  for (const line of report(findings)) say(line)
  if (findings.some(({ level }) => level === 'problem')) process.exitCode = 1
})

async function examine(): Promise<Finding[]> {
  if (existsSync('.env')) process.loadEnvFile('.env')
  let settings: Settings
  try {
    settings = parse(process.env)
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    return error.problems.map((line) => problem('settings', line))
  }
  const found = [
    checkSettings(settings),
    await checkPort(settings),
    checkDataDir(settings),
    withDatabase(settings, ({ url: databaseUrl, directUrl }) =>
      checkStores(settings, { databaseUrl, directUrl }),
    ).catch((error) => problem('database', reasonOf(error))),
    checkProviders(settings),
  ]
  return (await Promise.all(found)).flat()
}

function checkSettings({ production, secretKey, openAreas, publicBaseUrl, trustProxy }: Settings): Finding[] {
  const mode = production ? 'production' : 'development'
  const open = openAreas.size === 0 ? 'nothing' : [...openAreas].join(', ')
  const findings = [ok('settings', `valid, for ${mode}; open without a credential: ${open}`)]
  if (!production && secretKey === undefined)
    findings.push(note('settings', 'SECRET_KEY is generated in DATA_DIR: set one for several machines'))
  if (production && publicBaseUrl.startsWith('https:') && !trustProxy)
    findings.push(note('settings', 'clients have the address of the proxy: set TRUST_PROXY=true behind one'))
  return findings
}

/** A port in use is right when a service of ours uses it. */
async function checkPort({ host, port }: Settings): Promise<Finding> {
  const taken = await portProblem(host, port)
  if (taken === null) return ok('port', `${port} of ${host} is free`)
  const name = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host
  const health = await fetch(`http://${name}:${port}/health`, { signal: AbortSignal.timeout(2_000) })
    .then((answer) => answer.text())
    .catch(() => '')
  return health === '{"status":"ok"}'
    ? ok('port', `an edge listens on ${port} of ${host}`)
    : problem('port', taken)
}

function checkDataDir({ dataDir }: Settings): Finding {
  try {
    openDataDir(dataDir)
    return ok('DATA_DIR', `${dataDir} can be written to`)
  } catch (error) {
    return problem('DATA_DIR', reasonOf(error))
  }
}

async function checkStores(settings: Settings, urls: DatabaseUrls): Promise<Finding[]> {
  const { findings, isMigrated } = await checkDatabase(settings, urls)
  return [
    ...(settings.databaseUrl === undefined
      ? [note('database', `the embedded one, in ${settings.dataDir}`)]
      : []),
    ...findings,
    // Its table comes with the migrations.
    ...(isMigrated ? [await checkFiles(settings, urls)] : []),
  ]
}

/** Stores a few bytes, and removes them. */
function checkFiles(settings: Settings, { databaseUrl }: DatabaseUrls): Promise<Finding> {
  const store = settings.blobs.store
  return withPool(settings, databaseUrl, 'doctor', async (db) => {
    const blobs = createBlobs(db, settings)
    try {
      const { at } = await blobs.store(
        (async function* () {
          yield Buffer.from('doctor')
        })(),
      )
      await blobs.discard(at)
      return ok('files', `${store} takes and removes them`)
    } catch (error) {
      return problem('files', `BLOB_STORE=${store} takes none: ${reasonOf(error)}`)
    } finally {
      await blobs.close()
    }
  })
}
