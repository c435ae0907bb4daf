import type { EmailMessage, ProviderRequest } from '../../tasks/comms/ports.ts'
import type { TaskContext } from '../../tasks/context.ts'
import type { SecretKeys } from '../../tasks/platform/keys.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import type { TestDatabase } from '../database.ts'

/** Creates the context of tasks that mail, without a worker. `deliver` receives the messages and may throw. */
export function createMailContext(
  { db }: Pick<TestDatabase, 'db'>,
  jobId: string,
  options: {
    readonly keys: SecretKeys
    readonly settings?: Record<string, string>
    readonly deliver: (message: EmailMessage, request: ProviderRequest) => Promise<void>
    readonly warn?: (fields: object, message: string) => void
  },
): TaskContext {
  const { keys, settings = {}, deliver, warn = () => {} } = options
  const sendEmail: TaskContext['providers']['comms']['email'] = async (message, request) => {
    await request.begin()
    await deliver(message, request)
    return { kind: 'taken', providerId: null, status: 'sent', detail: null }
  }
  return {
    db,
    job: { id: jobId, attempt: 1, ownerId: null, requestId: null },
    settings: parseSettings(settings),
    keys,
    signal: new AbortController().signal,
    reportProgress: () => {},
    runFenced: (work: Parameters<TaskContext['runFenced']>[0]) => db.transaction(work),
    log: { info: () => {}, warn },
    providers: { comms: { isEmailIdempotent: true, email: sendEmail } },
  } as unknown as TaskContext
}
