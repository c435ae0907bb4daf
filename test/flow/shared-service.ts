import { type TestDatabase, testDatabase } from '../database.ts'
import { type Api, newEmail, startEdge } from '../edge/harness.ts'
import { type Child, Client, startProcess } from '../service.ts'
import { sharedByFiles } from '../services.ts'

/** An edge and a worker for tests that neither stop nor reconfigure them. */
export interface SharedService extends TestDatabase {
  /** The edge, in this process. */
  readonly api: Api
  /** A separate process with the queues `documents`, `pictures`, `load_test` and `system`. */
  readonly worker: Child
  /** The only admin. */
  readonly admin: Client
  /** Signs in a new account, which sees nothing of others. */
  client(): Promise<Client>
}

/**
 * The service that all files of this process share: a worker needs 0.8 s of CPU before its first jobs have run. The
 * database has other files' rows, so each file uses accounts and names of its own.
 */
export const sharedService = sharedByFiles(async (): Promise<SharedService> => {
  const database = await testDatabase()
  const api = await startEdge(database.url, { env: { REQUEST_WAIT_SECONDS: '60' } })
  const worker = await startProcess('worker', database.url, {
    WORKER_QUEUES: 'documents,pictures,load_test,system',
    WORKER_THREADS: '1',
  })
  const client = async (name?: string): Promise<Client> => {
    const made = new Client(api.port)
    await made.register(newEmail(name))
    return made
  }
  return { ...database, api, worker, admin: await client('admin'), client }
})
