import { AI_PROVIDERS } from '../../tasks/ai/providers.ts'
import { withDatabase, withPool } from '../../tasks/command.ts'
import { createBlobs } from '../../tasks/documents/blobs.ts'
import { hideEnvironment } from '../../tasks/environment.ts'
import { reasonOf } from '../../tasks/outage.ts'
import { portProblem } from '../../tasks/port.ts'
import { loadEnvFile, settingWarnings } from '../../tasks/setting-warnings.ts'
import { parseLoosely, type Settings } from '../../tasks/settings.ts'
import { checkDatabase } from './database.ts'
import { type Finding, note, ok, problem } from './findings.ts'
import { checkBlobFolder, checkDataDir, checkRagRoot } from './folders.ts'
import { checkMail, checkModels, checkPayments, checkTelephony } from './providers.ts'

// The settings on which checks depend.
const PORT = /^(HOST|PORT)$/
const DATABASE = /^DATABASE_/
const FILES = /^(BLOB_STORE|S3_)/
const EMAIL = /^EMAIL_/
const TELEPHONY = /^TELEPHONY_/
const PAYMENTS = /^(PROVIDER|STRIPE)_/
const MODELS = new RegExp(`^(AI|${AI_PROVIDERS.join('|').toUpperCase()})_`)

/** Makes all checks that do not depend on an invalid setting, and names the others. */
export async function examine(): Promise<Finding[]> {
  loadEnvFile()
  hideEnvironment()
  const { settings, problems } = parseLoosely(process.env)
  const unless = skipping(problems.map((line) => line.slice(0, line.indexOf(':'))))
  const found = [
    problems.length === 0 ? checkSettings(settings) : problems.map((line) => problem('settings', line)),
    settingWarnings(settings).map((line) => note('settings', line)),
    // First, because the embedded database takes a port, too.
    await unless(PORT, 'port', () => checkPort(settings)),
    checkDataDir(settings),
    checkRagRoot(settings),
    checkStores(settings, unless),
    unless(EMAIL, 'email', () => checkMail(settings)),
    unless(TELEPHONY, 'telephony', () => checkTelephony(settings)),
    unless(PAYMENTS, 'payments', () => checkPayments(settings)),
    unless(MODELS, 'models', () => checkModels(settings)),
  ]
  return (await Promise.all(found)).flat()
}

type Unless = (
  dependsOn: RegExp,
  what: string,
  check: () => Finding[] | Promise<Finding[]>,
) => Promise<Finding[]>

/** Makes a check unless one of the settings that it depends on is invalid. */
const skipping =
  (invalid: readonly string[]): Unless =>
  async (dependsOn, what, check) => {
    const names = new Set(invalid.filter((name) => dependsOn.test(name)))
    return names.size === 0 ? check() : [notChecked(what, `${[...names].join(', ')} is invalid`)]
  }

const notChecked = (what: string, reason: string): Finding => note(what, `not checked: ${reason}`)

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
async function checkPort({ host, port }: Settings): Promise<Finding[]> {
  const taken = await portProblem(host, port)
  if (taken === null) return [ok('port', `${port} of ${host} is free`)]
  const name = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host
  const health = await fetch(`http://${name}:${port}/health`, { signal: AbortSignal.timeout(2_000) })
    .then((answer) => answer.text())
    .catch(() => '')
  const isOurs = health === '{"status":"ok"}'
  return [isOurs ? ok('port', `an edge listens on ${port} of ${host}`) : problem('port', taken)]
}

async function checkStores(settings: Settings, unless: Unless): Promise<Finding[]> {
  let files: Finding[] | null = null
  const database = await unless(DATABASE, 'database', () =>
    withDatabase(settings, async ({ url: databaseUrl, directUrl }) => {
      const { findings, isMigrated } = await checkDatabase(settings, { databaseUrl, directUrl })
      // Its table comes with the migrations.
      if (isMigrated) files = await unless(FILES, 'files', () => checkFiles(settings, databaseUrl))
      return settings.databaseUrl === undefined
        ? [note('database', `the embedded one, in ${settings.dataDir}`), ...findings]
        : findings
    }).catch((error) => [problem('database', reasonOf(error))]),
  )
  return [...database, ...(files ?? (await unless(FILES, 'files', () => checkFolderOfFiles(settings))))]
}

/** Stores a few bytes, and removes them. */
function checkFiles(settings: Settings, databaseUrl: string): Promise<Finding[]> {
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
      return [ok('files', `${store} takes and removes them`)]
    } catch (error) {
      return [problem('files', `BLOB_STORE=${store} takes none: ${reasonOf(error)}`)]
    } finally {
      await blobs.close()
    }
  })
}

/** Files can't be stored without the database, and buckets are reached only to store some. */
const checkFolderOfFiles = (settings: Settings): Finding[] => [
  checkBlobFolder(settings) ?? notChecked('files', 'the database has to be usable and migrated'),
]
