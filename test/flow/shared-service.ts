import { createTestDatabase, type TestDatabase } from '../database.ts'
import { type Api, createEmail, startEdge } from '../edge/harness.ts'
import { type Child, Client, startProcess } from '../service.ts'
import { shareByFiles } from '../services.ts'

/** An edge and a worker for tests that neither stop nor reconfigure them. */
export interface SharedService extends TestDatabase {
  /** The edge, which runs in this process. */
  readonly api: Api
  /** A worker in a separate process with the queues `documents`, `pictures`, `load_test` and `system`. */
  readonly worker: Child
  /** The first account, which is the only admin. */
  readonly admin: Client
  /** Registers a new account without access to the data of others, and returns its client. */
  client(): Promise<Client>
}

const ADMIN = createEmail('admin')

const shareService = shareByFiles(async (): Promise<SharedService> => {
  const database = await createTestDatabase()
  const api = await startEdge(database.url, { env: { REQUEST_WAIT_SECONDS: '60' } })
  const worker = await startProcess('worker', database.url, {
    WORKER_QUEUES: 'documents,pictures,load_test,system',
    WORKER_THREADS: '1',
  })
  const client = async (email = createEmail()): Promise<Client> => {
    const made = new Client(api.port)
    await made.register(email)
    return made
  }
  return { ...database, api, worker, admin: await client(ADMIN), client }
})

/**
 * Starts the service once for all files of this process, because a worker needs 0.8 s of CPU for its start and first
 * jobs. The database contains rows of other files, so each file needs its own accounts and names.
 */
export async function getSharedService(): Promise<SharedService> {
  const service = await shareService()
  // The tests of a process can take longer than an access token is valid.
  await service.admin.signIn(ADMIN)
  return service
}
