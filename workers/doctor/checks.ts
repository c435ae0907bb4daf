import { AI_PROVIDERS } from '../../tasks/ai/providers.ts'
import { createBlobs } from '../../tasks/documents/blobs/blobs.ts'
import { withDatabase, withPool } from '../../tasks/platform/command.ts'
import { describeError } from '../../tasks/platform/outage.ts'
import { findPortProblem } from '../../tasks/platform/port.ts'
import { hideEnvironment } from '../../tasks/platform/settings/environment.ts'
import { parseWithProblems, type Settings } from '../../tasks/platform/settings/settings.ts'
import { findSettingWarnings, loadEnvFile } from '../../tasks/platform/settings/warnings.ts'
import { checkDatabase } from './database.ts'
import { type Finding, note, ok, problem } from './findings.ts'
import { checkBlobFolder, checkDataDir, checkRagRoot, checkTemporaryFolder } from './folders.ts'
import { checkKeys } from './keys.ts'
import { checkIssuer, checkMail, checkModels, checkPayments, checkTelephony } from './providers.ts'

// Patterns of the settings on which each check depends.
const PORT_SETTINGS = /^(HOST|PORT)$/
const DATABASE_SETTINGS = /^DATABASE_/
const KEY_SETTINGS = /^SECRET_/
const FILE_SETTINGS = /^(BLOB_STORE|S3_)/
const EMAIL_SETTINGS = /^EMAIL_/
const TELEPHONY_SETTINGS = /^TELEPHONY_/
const PAYMENT_SETTINGS = /^(PROVIDER|STRIPE)_/
const ISSUER_SETTINGS = /^OIDC_/
const MODEL_SETTINGS = new RegExp(`^(AI|${AI_PROVIDERS.join('|').toUpperCase()})_`)

/** Runs all checks; reports those that depend on an invalid setting as not checked. */
export async function runChecks(): Promise<Finding[]> {
  loadEnvFile()
  hideEnvironment()
  const { settings, problems } = parseWithProblems(process.env)
  const checkIfValid = createConditionalCheck(problems.map((line) => line.slice(0, line.indexOf(':'))))
  const findings = [
    problems.length === 0 ? checkSettings(settings) : problems.map((line) => problem('settings', line)),
    findSettingWarnings(settings).map((line) => note('settings', line)),
    // Check the port first: the embedded database takes a port, too.
    await checkIfValid(PORT_SETTINGS, 'port', () => checkPort(settings)),
    checkDataDir(settings),
    checkTemporaryFolder(),
    checkRagRoot(settings),
    checkStores(settings, checkIfValid),
    checkIfValid(EMAIL_SETTINGS, 'email', () => checkMail(settings)),
    checkIfValid(TELEPHONY_SETTINGS, 'telephony', () => checkTelephony(settings)),
    checkIfValid(PAYMENT_SETTINGS, 'payments', () => checkPayments(settings)),
    checkIfValid(ISSUER_SETTINGS, 'openid', () => checkIssuer(settings)),
    checkIfValid(MODEL_SETTINGS, 'models', () => checkModels(settings)),
  ]
  return (await Promise.all(findings)).flat()
}

type ConditionalCheck = (
  dependsOn: RegExp,
  name: string,
  check: () => Finding[] | Promise<Finding[]>,
) => Promise<Finding[]>

/** Runs a check unless a setting on which it depends is invalid. */
const createConditionalCheck =
  (invalidSettings: readonly string[]): ConditionalCheck =>
  async (dependsOn, name, check) => {
    const causes = new Set(invalidSettings.filter((setting) => dependsOn.test(setting)))
    return causes.size === 0
      ? check()
      : [createUncheckedFinding(name, `${[...causes].join(', ')} is invalid`)]
  }

const createUncheckedFinding = (name: string, reason: string): Finding => note(name, `not checked: ${reason}`)

function checkSettings({ production, secretKey, openAreas, publicBaseUrl, trustProxy }: Settings): Finding[] {
  const mode = production ? 'production' : 'development'
  const open = openAreas.size === 0 ? 'nothing' : [...openAreas].join(', ')
  const findings = [ok('settings', `valid, for ${mode}; open without a credential: ${open}`)]
  if (!production && secretKey === undefined)
    findings.push(note('settings', 'SECRET_KEY is generated in DATA_DIR: set it to use several machines'))
  if (production && publicBaseUrl.startsWith('https:') && !trustProxy)
    findings.push(
      note(
        'settings',
        'behind a proxy, set TRUST_PROXY=true: without it, all clients have the address of the proxy',
      ),
    )
  return findings
}

/** Checks that the port is free, or that an edge of Millrace listens there. */
async function checkPort({ host, port }: Settings): Promise<Finding[]> {
  const error = await findPortProblem(host, port)
  if (error === null) return [ok('port', `${port} of ${host} is free`)]
  const hostname = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host
  const health = await fetch(`http://${hostname}:${port}/health`, { signal: AbortSignal.timeout(2_000) })
    .then((response) => response.text())
    .catch(() => '')
  const isOurs = health === '{"status":"ok"}'
  return [isOurs ? ok('port', `an edge listens on ${port} of ${host}`) : problem('port', error)]
}

async function checkStores(settings: Settings, checkIfValid: ConditionalCheck): Promise<Finding[]> {
  let files: Finding[] | null = null
  let keys: Finding[] = []
  const database = await checkIfValid(DATABASE_SETTINGS, 'database', () =>
    withDatabase(settings, async ({ url: databaseUrl, directUrl }) => {
      const { findings, isMigrated } = await checkDatabase(settings, { databaseUrl, directUrl })
      // The table of files exists once the database is migrated.
      if (isMigrated) keys = await checkIfValid(KEY_SETTINGS, 'keys', () => checkKeys(settings, databaseUrl))
      if (isMigrated)
        files = await checkIfValid(FILE_SETTINGS, 'files', () => checkFiles(settings, databaseUrl))
      return settings.databaseUrl === undefined
        ? [note('database', `embedded, in ${settings.dataDir}`), ...findings]
        : findings
    }).catch((error) => [problem('database', describeError(error))]),
  )
  return [
    ...database,
    ...keys,
    ...(files ?? (await checkIfValid(FILE_SETTINGS, 'files', () => checkFilesFolder(settings)))),
  ]
}

/** Checks the file store by storing and deleting a small file. */
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
      return [ok('files', `${store} stores and deletes files`)]
    } catch (error) {
      return [problem('files', `BLOB_STORE=${store} fails: ${describeError(error)}`)]
    } finally {
      await blobs.close()
    }
  })
}

/** Checks only the folder: storing a file needs the database. */
const checkFilesFolder = (settings: Settings): Finding[] => [
  checkBlobFolder(settings) ?? createUncheckedFinding('files', 'it needs a working, migrated database'),
]
