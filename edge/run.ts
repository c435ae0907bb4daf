import { flushCompileCache } from 'node:module'
import { countAdmins } from '../sql/accounts/accounts.ts'
import { formatSetupNotice } from '../tasks/accounts/tokens.ts'
import { loadFileType } from '../tasks/documents/media.ts'
import { createLog, type Log } from '../tasks/platform/log.ts'
import { waitForDatabase } from '../tasks/platform/outage.ts'
import {
  ALL_IN_ONE_VARIABLE,
  loadSettingsOrExit,
  resolveDatabaseUrls,
  startOrExit,
  stopOnSignals,
} from '../tasks/platform/process.ts'
import type { Settings } from '../tasks/platform/settings/settings.ts'
import { loadKeys } from '../tasks/platform/stored-keys.ts'
import { onSupervisorGone } from '../tasks/platform/supervised.ts'
import { checkSchedule } from '../tasks/schedules/entries.ts'
import { serveEdge } from './edge.ts'
import { watchDescriptors } from './metrics/descriptors.ts'
import { loadBowser } from './routes/accounts/devices.ts'
import { loadTwilioValidator } from './routes/comms/twilio-signature.ts'
import { loadStripeWebhooks } from './routes/payments/signature.ts'

// Time limit of a graceful stop. Must be less than the 10 s that platforms give a process to stop.
const STOP_TIMEOUT_MS = 9_000

/** Runs one edge process. */
export async function runEdge(): Promise<void> {
  const settings = loadSettingsOrExit()
  const log = await createLog(settings.logLevel, 'edge')
  await startOrExit(settings, log, () => start(settings, log))
}

/**
 * Loads what requests import on first use. Node remembers a failed import for the life of the process, for example one
 * for lack of file descriptors.
 */
async function loadModules({ payments, telephony }: Settings): Promise<void> {
  await Promise.all([
    loadBowser(),
    loadFileType(),
    payments.webhookSecrets.length > 0 ? loadStripeWebhooks() : null,
    telephony.authToken === undefined ? null : loadTwilioValidator(),
  ])
}

async function start(settings: Settings, log: Log): Promise<void> {
  // Until the edge runs, there is nothing to stop, so just exit.
  let stop = (_reason: string): void => process.exit()
  onSupervisorGone(() => stop('the parent process has exited'))
  checkSchedule()
  await loadModules(settings)
  const database = await resolveDatabaseUrls(settings, log)
  const keys = await loadKeys(settings, database.databaseUrl, log)
  const serving = await serveEdge(
    {
      settings,
      ...database,
      keys,
      log,
    },
    {
      exclusive: !settings.sharePort,
      waitsForClients: process.env[ALL_IN_ONE_VARIABLE] === undefined,
    },
  )
  stop = stopOnSignals(log, STOP_TIMEOUT_MS, () => serving.stop())
  log.info({ port: serving.port }, 'The edge is listening')
  watchDescriptors(log)
  const { admins } = await waitForDatabase(log, () => serving.edge.db.one(countAdmins()))
  // `npm start` prints the setup notice itself.
  if (admins === 0 && process.env[ALL_IN_ONE_VARIABLE] === undefined)
    log.warn(formatSetupNotice(settings.publicBaseUrl, keys))
  process.send?.({ ready: true, port: serving.port, lacksAdmin: admins === 0 })
  // Flush the compile cache now, because a killed process would not write it.
  flushCompileCache()
}
